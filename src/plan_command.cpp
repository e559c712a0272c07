#include "plan_command.hpp"

#include <iostream>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/hostfile.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/plan_report.hpp"
#include "core/search/tuner.hpp"
#include "kernels/backend.hpp"

namespace dstune {

namespace {

constexpr Bytes kNoMemory = 1;

bool averages_by_node(const TuningConfig& config) {
  const json::value* zero = config.deepspeed.if_contains("zero_optimization");
  if (zero == nullptr) return false;
  const json::value* quantized = zero->get_object().if_contains("zero_quantized_gradients");
  return quantized != nullptr && quantized->is_bool() && quantized->get_bool();
}

}  // namespace

Plan make_plan(const CommandLine& options) {
  CommandLine planned = options;
  int devices_per_node = 0;
  if (!planned.world_size) {
    const Hostfile hosts = read_hostfile(options.hostfile.value());
    planned.world_size = hosts.workers();
    devices_per_node = hosts.workers_on_largest_host();
  }
  const int workers = *planned.world_size;
  Plan plan;
  plan.config = read_tuning_config(planned);
  plan.group_size = plan.config.ranks_per_experiment.value_or(workers);
  if (plan.group_size > workers) {
    throw ConfigError(plan.config.source,
                      {{"/dstune/ranks_per_experiment",
                        concat("is ", plan.group_size, ", but there are ", workers, " workers")}});
  }
  RunSettings& settings = plan.config.settings;
  settings.devices_per_node = devices_per_node;
  settings.backend = resolve_backend(settings.backend);
  plan.device = make_device(settings.backend, kNoMemory);
  plan.stages = plan_stages(plan.config, plan.group_size, make_memory_predictor(plan.device.get()));
  plan.experiments = plan_experiments(plan.config, plan.group_size, plan.stages);
  for (const auto& warning : plan.config.warnings) log_warning(warning);
  if (devices_per_node == 0 && averages_by_node(plan.config)) {
    log_warning(
        "--world-size plans for one host; zero_quantized_gradients needs to know them all, "
        "use --hostfile");
  }
  return plan;
}

void print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options);
  std::cout << (options.format == TableFormat::json
                    ? format_plan_json(plan.config, plan.group_size, plan.stages, plan.experiments)
                    : format_plan_table(plan.config, plan.group_size, plan.stages,
                                        plan.experiments))
            << std::flush;
}

}  // namespace dstune
