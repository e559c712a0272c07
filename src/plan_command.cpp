#include "plan_command.hpp"

#include <algorithm>

#include "core/base/log.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/config/hostfile.hpp"
#include "core/search/memory_predictor.hpp"
#include "core/search/modelled.hpp"
#include "core/search/plan_report.hpp"
#include "core/search/tuner.hpp"
#include "kernels/backend.hpp"
#include "tuner_rank.hpp"

namespace dstune {

namespace {

// With one there is nothing to shard.
constexpr int kFewestWorkers = 2;

bool averages_by_node(const TuningConfig& config) {
  const json::value* zero = config.deepspeed.if_contains("zero_optimization");
  if (zero == nullptr || !zero->is_object()) return false;
  const json::value* quantized = zero->get_object().if_contains("zero_quantized_gradients");
  return quantized != nullptr && quantized->is_bool() && quantized->get_bool();
}

}  // namespace

Plan begin_plan(const CommandLine& options) {
  CommandLine planned = options;
  int devices_per_node = 0;
  if (options.hostfile) {
    const Hostfile hosts = read_hostfile(*options.hostfile);
    planned.world_size = hosts.workers();
    devices_per_node = hosts.workers_on_largest_host();
  }
  Plan plan;
  plan.config = read_tuning_config(planned);
  const int workers =
      planned.world_size.value_or(plan.config.ranks_per_experiment.value_or(kFewestWorkers));
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
  return plan;
}

void check_plan(const TuningConfig& config, int group_size) {
  const auto device = make_device(config.settings.backend, kNoMemory);
  check_modelled(config, plan_stages(config, group_size, make_memory_predictor(device.get())));
}

void log_warnings(const TuningConfig& config) {
  for (const auto& warning : config.warnings) log_warning(warning);
  if (config.settings.devices_per_node == 0 && averages_by_node(config)) {
    log_warning(
        "--world-size plans for one host; zero_quantized_gradients needs to know them all, "
        "use --hostfile");
  }
}

void complete_plan(Plan& plan) {
  plan.stages = plan_stages(plan.config, plan.group_size, make_memory_predictor(plan.device.get()));
  check_modelled(plan.config, plan.stages);
  plan.experiments = plan_experiments(plan.config, plan.group_size, plan.stages);
}

Plan make_plan(const CommandLine& options) {
  Plan plan = begin_plan(options);
  complete_plan(plan);
  log_warnings(plan.config);
  return plan;
}

bool fits(const Plan& plan) {
  const bool any = std::any_of(plan.stages.begin(), plan.stages.end(),
                               [](const StagePlan& stage) { return stage.feasible; });
  if (!any) {
    log_error(
        "no experiment fits in memory; raise memory_limit, use more ranks or a smaller model");
  }
  return any;
}

int print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options);
  for (const auto& note : plan.config.notes) log_line(note);
  print(options.format == TableFormat::json
            ? format_plan_json(plan.config, plan.group_size, plan.stages, plan.experiments)
            : format_plan_table(plan.config, plan.group_size, plan.stages, plan.experiments));
  return fits(plan) ? exit_found : exit_nothing_fits;
}

}  // namespace dstune
