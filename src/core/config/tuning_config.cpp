#include "core/config/tuning_config.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/autotuning_section.hpp"
#include "core/config/deepspeed/auto_values.hpp"
#include "core/config/deepspeed/batch_sizes.hpp"
#include "core/config/deepspeed/deepspeed_checks.hpp"
#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "core/config/deepspeed/earlier_forms.hpp"
#include "core/config/dstune_section.hpp"
#include "core/config/model/model_parallel.hpp"
#include "core/config/overrides.hpp"
#include "core/config/read_checkpointing.hpp"
#include "core/config/read_deepspeed_version.hpp"
#include "core/config/search_keys.hpp"
#include "core/config/search_size.hpp"
#include "core/config/space/read_space.hpp"
#include "core/config/trainer/trainer_file.hpp"
#include "core/config/tuners.hpp"
#include "core/input/coercions.hpp"
#include "core/input/key_rules.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

namespace {

void warn_of_remaining_auto(const json::object& deepspeed, Problems& problems) {
  for (const auto& pointer : find_auto(deepspeed)) {
    problems.warn(pointer,
                  "stays \"auto\": only the training program can resolve it; write a value if "
                  "DeepSpeed is used without the Trainer");
  }
}

// Only data-parallel ranks count: GPUs that share a model train the same batch.
std::optional<int> ranks_of_an_experiment(const TuningConfig& config, const CommandLine& options) {
  auto ranks = config.ranks_per_experiment;
  if (!ranks) ranks = options.world_size;  // --plan: all workers
  if (ranks) *ranks /= config.autotuning.mp_size;
  return ranks == 0 ? std::nullopt : ranks;
}

// What the user says of the model is of the whole one.
void share_model(TuningConfig& config, Problems& problems) {
  const AutotuningConfig& autotuning = config.autotuning;
  ModelSpec& model = config.settings.model;
  const auto parameters = make_model_parameters(model);
  const auto whole = parameters.total();
  check_model_info(autotuning.model_info, model, whole, problems);
  config.num_params = autotuning.model_info.num_params.value_or(whole);
  config.trainable_num_params =
      model.fine_tuning.is_everything() ? config.num_params : parameters.trainable_total();
  model = part_of_one_rank(std::move(model), autotuning.mp_size, problems);
  auto note =
      note_of_model_parallelism(autotuning.mp_size, whole, make_model_parameters(model).total());
  if (!note.empty()) config.notes.push_back(std::move(note));
}

// The part of the file that stays the same in every experiment.
json::object fixed_part(const json::object& checked) {
  json::object fixed =
      without_keys(checked, {"autotuning", "dstune", "train_batch_size",
                             "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"});
  auto* const zero = fixed.if_contains("zero_optimization");
  if (zero != nullptr && zero->is_object()) {
    *zero = without_deprecated_offload(without_keys(zero->get_object(), {"stage"}));
  }
  return fixed;
}

// Whoever goes on with a run may name the folder that the file names; its experiments stay where
// they are then.
void take_results_dir(const std::string& given, AutotuningConfig& config) {
  namespace fs = std::filesystem;
  const auto whole = [](const std::string& path) {
    return (fs::absolute(path) / "").lexically_normal();
  };
  const bool is_files = config.has_own_results_dir && whole(given) == whole(config.results_dir);
  config.has_own_results_dir = true;
  if (is_files) return;
  config.results_dir = given;
  // Runs with results of their own do not share the experiments' files either.
  if (!config.has_own_exps_dir) config.exps_dir = given + "/exps";
}

void drop_stages_not_searched(TuningConfig& config) {
  std::erase_if(config.space.of_stage, [&](const auto& own) {
    if (std::ranges::count(config.stages, own.first) > 0) return false;
    config.warnings.push_back(concat("z", own.first, " of /dstune/space is not used: stage ",
                                     own.first, " is not among /zero_optimization/stage"));
    return true;
  });
}

// Lengths move slowest among the axes.
void add_sequence_lengths(TuningConfig& config) {
  if (config.sequence_lengths.empty()) return;
  Axis axis{std::string(kSequenceLengthPointer), {}, {}};
  for (const std::int64_t length : config.sequence_lengths) axis.values.emplace_back(length);
  config.space.all_stages.insert(config.space.all_stages.begin(), AxisGroup{{std::move(axis)}});
}

// The file may be another's, and the command that it adds flags to is the user's.
void name_added_flags(TuningConfig& config, const CommandLine& options) {
  std::vector<std::string> flags;
  for (const auto& mapping : config.autotuning.arg_mappings) {
    const auto* const flag = mapping.value().if_string();
    if (flag == nullptr || trim(*flag).empty()) continue;
    flags.push_back(concat(trim(*flag), " (", std::string_view(mapping.key()), ")"));
  }
  if (!options.run || flags.empty()) return;
  config.warnings.push_back(concat("/autotuning/arg_mappings sets ", join(flags, ", "),
                                   " in the training command that --run starts"));
}

bool may_train_in_16_bits(const TuningConfig& config) {
  if (config.deepspeed.step().dtype != DType::fp32) return true;
  for (const AxisGroup& group : config.space.axes_of(3)) {
    for (const Axis& axis : group.tied) {
      const bool enables = axis.pointer == "/bf16/enabled" || axis.pointer == "/fp16/enabled";
      if (enables && std::ranges::count(axis.values, json::value(true)) > 0) return true;
    }
  }
  return false;
}

// DeepSpeed's own default, stage 0, is nobody's choice.
std::optional<int> given_stage(const json::object& file) {
  const auto* const zero = file.if_contains("zero_optimization");
  const auto* const section = zero == nullptr ? nullptr : zero->if_object();
  const auto* const value = section == nullptr ? nullptr : section->if_contains("stage");
  if (value == nullptr) return std::nullopt;
  const auto stage = as_integer(coerced(*value, rules::integer("", 0, 3)));
  return stage ? std::optional(static_cast<int>(*stage)) : std::nullopt;
}

std::optional<GivenPoint> given_point(const json::object& file, const TuningConfig& config,
                                      std::size_t checkpointing_modes) {
  const auto stage = given_stage(file);
  const bool is_one = !config.space.has_lists && config.micro_batches.empty() &&
                      config.sequence_lengths.empty() && checkpointing_modes <= 1;
  if (!stage || !is_one) return std::nullopt;
  GivenPoint point{*stage, {}, {}};
  if (config.micro_batch_is_given) point.micro_batch = config.start_micro_batch;
  if (config.accumulation_is_given) point.accumulation_steps = config.accumulation_steps;
  const bool follows = config.objective.train_batch_size && point.accumulation_steps;
  return point.micro_batch || follows ? std::optional(point) : std::nullopt;
}

// What a run that searches stage 3 says of how the trainer makes the model.
void note_zero_init(const json::object& file, const DeepSpeedVersion& version,
                    TuningConfig& config) {
  if (std::ranges::count(config.stages, 3) == 0 || !config.deepspeed.fault().empty()) return;
  const StepConfig& step = config.deepspeed.step();
  std::string note = step.memory_efficient_linear ? note_of_zero_init(file, version) : "";
  if (!note.empty()) config.notes.push_back(std::move(note));
  if (config.settings.model.fine_tuning.lora && step.zero_init && may_train_in_16_bits(config)) {
    config.notes.emplace_back(
        "PEFT's adapters are fp32 in stage 3 of a 16-bit model that is made under zero.Init, and "
        "are gathered in calls of their own; here they have the model's type, as without it "
        "(\"dstune\": {\"zero_init\": false})");
  }
}

void warn_of_unused_drive(TuningConfig& config) {
  if (config.offload.nvme_path.empty()) return;
  const bool may_use_it =
      has_pool(config.tuner) && std::ranges::any_of(config.stages, [&](int stage) {
        return std::ranges::any_of(config.offload.levels_of(stage), uses_drive);
      });
  if (may_use_it) return;
  config.warnings.emplace_back(
      "dstune.nvme_path is not used: a search goes to a drive in stage 3 alone, where "
      "dstune.offload "
      "is \"if_needed\" or lists it, and with another tuner than fast");
}

// Where the file says it, or lists it, nothing else is offloaded.
void complete_offload(const json::object& fixed, TuningConfig& config, Problems& problems) {
  const bool is_asked_for = config.offload.is_given && config.offload.when != OffloadWhen::never;
  if (is_asked_for && !has_pool(config.tuner)) {
    problems.add("/dstune/offload", concat("is given, but the tuner ", in_quotes(config.tuner),
                                           " searches no spaces; accepted: another tuner"));
  }
  if (!says_what_is_offloaded(fixed, config.space, config.stages)) {
    warn_of_unused_drive(config);
    return;
  }
  if (is_asked_for) {
    problems.add("/dstune/offload",
                 "is given, but zero_optimization of the file says what is offloaded; accepted: "
                 "one of the two");
  }
  if (!config.offload.nvme_path.empty()) {
    config.warnings.emplace_back(
        "dstune.nvme_path is not used, since zero_optimization of the file says what is offloaded");
  }
  config.offload.when = OffloadWhen::never;
}

std::string source_of(const CommandLine& options) {
  return options.config_path.empty() ? "no CONFIG.json" : options.config_path;
}

TuningConfig read_sections(const json::object& given, const CommandLine& options,
                           Problems& problems) {
  TuningConfig config;
  config.source = source_of(options);
  const auto version = read_deepspeed_version(given, options.installed_deepspeed, problems);
  json::object file = without_earlier_forms(given, version, problems);
  const auto* const dstune = file.if_contains("dstune");
  const bool model_known =
      read_dstune(dstune == nullptr ? json::value() : *dstune, options, config, problems);
  const auto* const autotuning = file.if_contains("autotuning");
  if (autotuning != nullptr) {
    config.autotuning = read_autotuning(*autotuning, problems, config.warnings);
    name_added_flags(config, options);
  }
  if (options.results_dir) take_results_dir(*options.results_dir, config.autotuning);
  if (model_known) share_model(config, problems);
  complete_objective(file, config, problems);
  // Without a model the run ends here anyway: any size keeps the "auto" keys from being faults.
  const auto hidden_size = model_known ? config.settings.model.hidden_size : std::int64_t{1};
  config.space = take_space(file, config.autotuning.fast, hidden_size, problems);
  refuse_later_keys(file, config.space, version, problems);
  const auto checkpointing = read_checkpointing(file, problems);
  if (checkpointing.size() > 1) {
    config.space.all_stages.push_back({{Axis{kCheckpointingPointer, checkpointing}}});
  }
  add_sequence_lengths(config);
  config.stages = read_stages(file, problems);
  drop_stages_not_searched(config);
  read_batch_sizes(file, ranks_of_an_experiment(config, options), config, problems);
  config.given_point = given_point(file, config, checkpointing.size());
  config.left_to_trainer = left_to_trainer(file);
  const auto resolved = resolve_auto(file, hidden_size);
  const auto checked = check_section(resolved, deepspeed_section(), "", problems);
  check_relations(checked, problems);
  warn_of_offload(checked, config.stages, problems);
  json::object fixed = fixed_part(checked);
  set_checkpointing(checkpointing, fixed, problems);
  set_deepspeed_version(version, fixed);
  set_zero_init(file, fixed);
  complete_offload(fixed, config, problems);
  warn_of_remaining_auto(fixed, problems);
  if (problems.empty()) {  // else a key may have any type
    config.deepspeed = std::move(fixed);
    note_zero_init(file, version, config);
  }
  for (auto& warning : problems.warnings()) config.warnings.push_back(std::move(warning));
  return config;
}

// Making the step's settings finds the faults of sections that no table describes.
void check_steps(const TuningConfig& config, Problems& problems) {
  for (const int stage : config.stages) {
    json::object staged = config.deepspeed.json();
    json::value& zero = staged["zero_optimization"];
    if (!zero.is_object()) zero.emplace_object();
    zero.get_object()["stage"] = stage;
    const DeepSpeedConfig step(std::move(staged));
    if (step.fault().empty()) continue;
    problems.add("file", step.fault());
    return;
  }
}

// Without a file nobody has said what is trained in. Nearly all train in bf16; the plan says that
// it assumed so.
ConfigFile empty_file() { return {{{"bf16", {{"enabled", "auto"}}}}, {}}; }

}  // namespace

TuningConfig read_tuning_config(const CommandLine& options) {
  Problems problems(source_of(options));
  std::optional<ConfigFile> file = empty_file();
  if (!options.config_path.empty()) file = read_config_file(options.config_path, problems);
  if (!file) problems.throw_if_any();
  auto overrides = apply_overrides(file->config, options, problems);
  auto config = read_sections(file->config, options, problems);
  config.open_precision = overrides.open_precision;
  config.notes.insert(config.notes.begin(), overrides.notes.begin(), overrides.notes.end());
  config.notes.insert(config.notes.begin(), file->notes.begin(), file->notes.end());
  config.warnings.insert(config.warnings.begin(), overrides.warnings.begin(),
                         overrides.warnings.end());
  problems.throw_if_any();
  check_steps(config, problems);
  check_search_size(config, problems);
  problems.throw_if_any();
  return config;
}

}  // namespace dstune
