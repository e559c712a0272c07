#include "core/config/tuning_config.hpp"

#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/base/text.hpp"
#include "core/config/auto_values.hpp"
#include "core/config/autotuning_section.hpp"
#include "core/config/batch_sizes.hpp"
#include "core/config/deepspeed_checks.hpp"
#include "core/config/deepspeed_keys.hpp"
#include "core/config/dstune_section.hpp"
#include "core/config/read_json.hpp"
#include "core/train/step_config.hpp"

namespace dstune {

namespace {

// What an unknown key at the top most likely was meant to be: DeepSpeed ignores such keys, so a
// misspelt section would silently have no effect.
void warn_of_near_misses(const json::object& file, std::vector<std::string>& warnings) {
  const auto known = known_keys(deepspeed_section());
  for (const auto& member : file) {
    const std::string near = did_you_mean(std::string_view(member.key()), known);
    if (near.empty() || near == std::string_view(member.key())) continue;
    warnings.push_back(concat(child("", std::string_view(member.key())),
                              " is no key of DeepSpeed and has no effect; did you mean ",
                              in_quotes(near), "?"));
  }
}

void warn_of_remaining_auto(const json::object& deepspeed, std::vector<std::string>& warnings) {
  for (const auto& pointer : find_auto(deepspeed)) {
    warnings.push_back(concat(pointer,
                              " stays \"auto\": only the training program can resolve it; "
                              "write a value if DeepSpeed is used without the Trainer"));
  }
}

std::optional<int> ranks_of_an_experiment(const TuningConfig& config, const CommandLine& options) {
  if (config.ranks_per_experiment) return config.ranks_per_experiment;
  return options.world_size;  // --plan: all workers
}

// What stays the same in every experiment.
json::object fixed_part(const json::object& checked) {
  json::object fixed =
      without_keys(checked, {"autotuning", "dstune", "train_batch_size",
                             "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"});
  auto* const zero = fixed.if_contains("zero_optimization");
  if (zero != nullptr) {
    *zero = without_deprecated_offload(without_keys(zero->get_object(), {"stage"}));
  }
  return fixed;
}

const json::value* section(const json::object& file, std::string_view key) {
  return file.if_contains(key);
}

TuningConfig read_sections(const json::object& file, const CommandLine& options,
                           Problems& problems) {
  TuningConfig config;
  config.source = options.config_path;
  warn_of_near_misses(file, config.warnings);
  const auto* const dstune = section(file, "dstune");
  const bool model_known =
      read_dstune(dstune == nullptr ? json::value() : *dstune, options, config, problems);
  if (const auto* autotuning = section(file, "autotuning")) {
    config.autotuning = read_autotuning(*autotuning, problems, config.warnings);
  }
  if (options.results_dir) {
    config.autotuning.results_dir = *options.results_dir;
    // Runs with results of their own do not share the experiments' files either.
    const auto* autotuning = section(file, "autotuning");
    if (autotuning == nullptr || autotuning->get_object().if_contains("exps_dir") == nullptr) {
      config.autotuning.exps_dir = *options.results_dir + "/exps";
    }
  }
  config.stages = read_stages(file, problems);
  read_batch_sizes(file, ranks_of_an_experiment(config, options), config, problems);
  // Without a model the run ends here anyway: any size keeps the "auto" keys from being faults.
  const auto hidden_size = model_known ? config.settings.model.hidden_size : std::int64_t{1};
  const auto resolved = resolve_auto(file, hidden_size, config.warnings);
  const auto checked = check_section(resolved, deepspeed_section(), "", problems);
  check_relations(checked, problems);
  config.deepspeed = fixed_part(checked);
  warn_of_remaining_auto(config.deepspeed, config.warnings);
  return config;
}

// What the step reads of the sections that no table describes.
void check_steps(const TuningConfig& config, Problems& problems) {
  for (const int stage : config.stages) {
    json::object step = config.deepspeed;
    json::value& zero = step["zero_optimization"];
    if (!zero.is_object()) zero.emplace_object();
    zero.get_object()["stage"] = stage;
    try {
      make_step_config(step);
    } catch (const std::invalid_argument& error) {
      problems.add("file", error.what());
      return;
    }
  }
}

}  // namespace

TuningConfig read_tuning_config(const CommandLine& options) {
  Problems problems(options.config_path);
  const auto value = read_json_file(options.config_path, "", problems);
  if (value && !value->is_object()) {
    problems.add("file", concat("is ", describe(*value), "; accepted: a JSON object"));
  }
  if (!value || !value->is_object()) problems.throw_if_any();
  auto config = read_sections(value->get_object(), options, problems);
  problems.throw_if_any();
  check_steps(config, problems);
  problems.throw_if_any();
  return config;
}

}  // namespace dstune
