#include "core/search/space/offload_space.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/tuners.hpp"
#include "core/search/space/leanest.hpp"

namespace dstune {
namespace {

constexpr const char* kSubGroupSize = "/zero_optimization/sub_group_size";

bool is_about(const AxisGroup& group, const std::string& pointer) {
  return std::ranges::any_of(group.tied, [&](const Axis& axis) { return axis.pointer == pointer; });
}

/// Whether the user says how large sub-groups are; "auto" leaves it to us.
bool sets_sub_groups(const TuningConfig& config, int stage) {
  json::value file = config.deepspeed.json();
  const bool is_in_file = find_at(file, keys_of(kSubGroupSize)) != nullptr &&
                          !config.space.open.contains(kSubGroupSize);
  return is_in_file || std::ranges::any_of(config.space.axes_of(stage), [](const AxisGroup& group) {
           return is_about(group, kSubGroupSize);
         });
}

/// The settings with which a level is tried, the fastest first: the copies of what is not pinned
/// make the host wait, and small sub-groups are more requests.
std::vector<OffloadSettings> ways_of(const TuningConfig& config, int stage, OffloadLevel level) {
  std::vector<std::int64_t> sizes = {sets_sub_groups(config, stage) ? 0 : kUsualSubGroup};
  if (uses_drive(level) && sizes.front() != 0) sizes.push_back(kSmallSubGroup);
  std::vector<OffloadSettings> ways;
  for (const bool pins : {true, false}) {
    for (const std::int64_t size : sizes) ways.push_back({pins, config.offload.nvme_path, size});
  }
  return ways;
}

StagePlan plan_with(const TuningConfig& config, int group_size, int stage, OffloadLevel level,
                    const OffloadSettings& settings, const MemoryPredictor& predictor) {
  TuningConfig own = config;
  json::object deepspeed = config.deepspeed.json();
  for (const Axis& axis : offload_axes(stage, {level}, settings).tied) {
    set_at(deepspeed, keys_of(axis.pointer), axis.values.front());
  }
  own.deepspeed = std::move(deepspeed);
  own.stages = {stage};
  return plan_stages(own, group_size, predictor).front();
}

/// Those of `levels` that use a drive, or the others.
std::vector<OffloadLevel> only(std::vector<OffloadLevel> levels, bool on_drive) {
  std::erase_if(levels, [&](OffloadLevel level) { return uses_drive(level) != on_drive; });
  return levels;
}

std::int64_t least_micro_batch(const TuningConfig& config) {
  return config.micro_batches.empty() ? 1 : config.micro_batches.front();
}

/// Finds the stages that are offloaded, and how.
class Offloader {
 public:
  Offloader(const TuningConfig& config, int group_size, const MemoryPredictor& predictor,
            const DryRunner& dry_run)
      : config_(config), group_size_(group_size), predictor_(predictor), dry_run_(dry_run) {}

  /// None if the stage is left as it is.
  std::optional<AxisGroup> axes(int stage) const {
    std::vector<OffloadLevel> levels = config_.offload.levels_of(stage);
    if (levels.empty()) return std::nullopt;
    const bool if_needed = config_.offload.when == OffloadWhen::if_needed;
    if (if_needed && fits_without(stage)) return std::nullopt;
    const auto least =
        least_offload(config_, group_size_, stage, without(OffloadLevel::none, levels), predictor_);
    const bool fits = least && fits_as_asked(config_, least->plan);
    // Of a space other points may fit than the one that a plan has of it.
    if (if_needed && !fits && (!least || config_.space.empty())) return std::nullopt;
    if (if_needed && fits) levels.erase(levels.begin(), std::ranges::find(levels, least->level));
    // A drive is slow and wears: it is no choice where it is not needed.
    if (if_needed &&
        std::ranges::any_of(levels, [](OffloadLevel level) { return uses_drive(level); })) {
      const bool needs_drive =
          fits ? uses_drive(least->level) : !fits_in_space(stage, only(levels, false));
      levels = only(std::move(levels), needs_drive);
    }
    return offload_axes(stage, levels, settings_for(stage, levels, fits ? &*least : nullptr));
  }

 private:
  /// The settings of what fits; those of a drive are found for it alone.
  OffloadSettings settings_for(int stage, const std::vector<OffloadLevel>& levels,
                               const OffloadedStage* least) const {
    OffloadSettings settings =
        least != nullptr ? least->settings : ways_of(config_, stage, levels.front()).front();
    const std::vector<OffloadLevel> on_drive = only(levels, true);
    if (on_drive.empty() || (least != nullptr && uses_drive(least->level))) return settings;
    const auto drives = least_offload(config_, group_size_, stage, on_drive, predictor_);
    if (drives) settings.sub_group_size = drives->settings.sub_group_size;
    return settings;
  }

  /// Whether some point of the stage's space fits with one of the levels.
  bool fits_in_space(int stage, const std::vector<OffloadLevel>& levels) const {
    if (levels.empty()) return false;
    TuningConfig own = config_;
    own.space.of_stage[stage].push_back(
        offload_axes(stage, levels, ways_of(config_, stage, levels.front()).front()));
    return max_micro_batch_of_leanest(own, group_size_, stage, dry_run_) >=
           least_micro_batch(config_);
  }

  bool fits_without(int stage) const {
    TuningConfig own = config_;
    own.stages = {stage};
    const StagePlan plan = plan_stages(own, group_size_, predictor_).front();
    if (fits_as_asked(config_, plan) || !plan.unsupported.empty()) return true;
    return !config_.space.empty() &&
           max_micro_batch_of_leanest(config_, group_size_, stage, dry_run_) >=
               least_micro_batch(config_);
  }

  static std::vector<OffloadLevel> without(OffloadLevel level, std::vector<OffloadLevel> levels) {
    std::erase(levels, level);
    return levels;
  }

  const TuningConfig& config_;
  int group_size_;
  const MemoryPredictor& predictor_;
  const DryRunner& dry_run_;
};

std::string words_for(OffloadLevel level) {
  switch (level) {
    case OffloadLevel::optimizer:
      return "the optimizer in the host's memory (offload_optimizer cpu)";
    case OffloadLevel::optimizer_on_nvme:
      return "the optimizer on NVMe and the parameters in the host's memory (offload_optimizer "
             "nvme, offload_param cpu)";
    default:
      return "optimizer and parameters in the host's memory (offload_optimizer, offload_param cpu)";
  }
}

/// Whether all of the group's points have another device than "none" for the parameters.
bool moves_parameters(const AxisGroup& group) {
  return std::ranges::any_of(group.tied, [](const Axis& axis) {
    return axis.pointer == "/zero_optimization/offload_param/device" &&
           std::ranges::count(axis.values, json::value("none")) == 0;
  });
}

/// Whether some of the group's points use a drive.
bool may_use_drive(const AxisGroup& group) {
  return is_about(group, "/zero_optimization/offload_optimizer/nvme_path");
}

/// Stages with the axes that are added to their spaces.
using AddedAxes = std::vector<std::pair<int, AxisGroup>>;

std::string note_of(const TuningConfig& config, const AddedAxes& added, bool on_drive) {
  std::vector<std::string> stages;
  bool parameters_too = false;
  for (const auto& [stage, axes] : added) {
    if (may_use_drive(axes) != on_drive) continue;
    stages.push_back(std::to_string(stage));
    parameters_too = parameters_too || moves_parameters(axes);
  }
  if (stages.empty()) return "";
  std::string note = concat("nothing of ", stages.size() == 1 ? "stage " : "stages ",
                            join(stages, ", "), " fits on the device alone, so the optimizer");
  if (on_drive) {
    note = concat("nothing of stage ", stages.front(),
                  " fits on the device and in the host's memory, so the optimizer goes to the "
                  "drive of dstune.nvme_path there");
  } else {
    note += concat(parameters_too ? ", in stage 3 with the parameters," : "",
                   " goes to the host's memory there");
  }
  note += "; \"dstune\": {\"offload\": \"never\"} turns that off";
  if (config.deepspeed.json().contains("optimizer")) return note;
  return concat(note,
                "; DeepSpeed then needs an \"optimizer\" in the file, or a DeepSpeedCPUAdam made "
                "by the script");
}

/// What makes a drive faster, where the file says nothing of it.
std::string note_on_aio(const TuningConfig& config, const AddedAxes& added) {
  const bool has_drive = std::ranges::any_of(
      added, [](const auto& stage_and_axes) { return may_use_drive(stage_and_axes.second); });
  if (!has_drive || config.deepspeed.json().contains("aio")) return "";
  return concat(
      "the file has no \"aio\" section, so a drive is used with DeepSpeed's defaults; "
      "dstune-mpi --nvme-sweep ",
      config.offload.nvme_path, " finds the section that is best for that drive");
}

/// "12.00 GiB", and if that is too much "30.00 GiB (over the limit of 24.00 GiB)".
std::string against(Bytes need, Bytes limit) {
  if (need <= limit) return format_bytes(need);
  return concat(format_bytes(need), " (over the limit of ", format_bytes(limit), ")");
}

}  // namespace

bool fits_as_asked(const TuningConfig& config, const StagePlan& plan) {
  return plan.feasible && plan.max_micro_batch >= least_micro_batch(config);
}

std::optional<OffloadedStage> least_offload(const TuningConfig& config, int group_size, int stage,
                                            const std::vector<OffloadLevel>& levels,
                                            const MemoryPredictor& predictor) {
  std::optional<OffloadedStage> nearest;
  for (const OffloadLevel level : levels) {
    for (const OffloadSettings& way : ways_of(config, stage, level)) {
      OffloadedStage own{level, way, plan_with(config, group_size, stage, level, way, predictor)};
      if (!own.plan.unsupported.empty()) break;
      if (fits_as_asked(config, own.plan)) return own;
      const bool fits_on_host = own.plan.fits_on_host();
      // More offloading to the host is no help where only the host is short.
      const bool was_near = nearest && nearest->level != level && !nearest->plan.fits_on_host() &&
                            nearest->plan.peak.counted() <= config.settings.memory_limit;
      if (!was_near) nearest = std::move(own);
      if (fits_on_host) break;
    }
  }
  return nearest;
}

namespace {

/// "with ... it fits: ...", or what a rank needs and how much of it is too much.
std::string words_for(const OffloadedStage& offloaded, const RunSettings& settings) {
  const StagePlan& plan = offloaded.plan;
  const HostLimits limits = settings.host_limits();
  std::vector<std::string> needs = {
      concat(against(plan.peak.counted(), settings.memory_limit), " of the device"),
      concat(against(plan.peak_host.held, limits.held), " of the host")};
  if (plan.peak_host.pinned > limits.pinned) {
    needs.push_back(concat(against(plan.peak_host.pinned, limits.pinned), " of pinned memory"));
  }
  if (plan.peak_host.drive > 0) {
    needs.push_back(concat(against(plan.peak_host.drive, limits.drive), " of the drive"));
  }
  const std::string last = needs.back();
  needs.pop_back();
  const std::string all = concat(join(needs, ", "), " and ", last);
  const bool has_size = uses_drive(offloaded.level) && offloaded.settings.sub_group_size > 0;
  const std::string what =
      concat("with ", words_for(offloaded.level),
             has_size ? concat(", sub_group_size ", offloaded.settings.sub_group_size) : "",
             offloaded.settings.pins ? "" : ", which is not pinned",
             has_size || !offloaded.settings.pins ? "," : "");
  // Where all fit at micro-batch 1, the least that the user allows does not.
  return plan.feasible ? concat(what, " it fits: ", all, " per rank at micro-batch 1, up to ",
                                "micro-batch ", plan.max_micro_batch)
                       : concat(what, " a rank needs ", all, " at micro-batch 1");
}

/// The levels that if_needed goes to, those of a drive or the others.
std::vector<OffloadLevel> needed_levels(const std::string& nvme_path, int stage, bool on_drive) {
  OffloadSearch search;
  search.nvme_path = nvme_path;
  return only(search.levels_of(stage), on_drive);
}

}  // namespace

std::string offload_advice(TuningConfig config, const Machine& machine, int stage,
                           const MemoryPredictor& predictor) {
  RunSettings& settings = config.settings;
  if (settings.is_one_memory()) {
    const int on_a_host = machine.devices_per_node > 0 ? machine.devices_per_node : machine.workers;
    settings.host_memory_limit = users_host_memory_limit(config, on_a_host).value_or(kNoLimit);
  }
  const auto with = [&](bool on_drive) {
    return least_offload(config, machine.group_size, stage,
                         needed_levels(config.offload.nvme_path, stage, on_drive), predictor);
  };
  const auto on_host = with(false);
  if (!on_host) return "";
  std::string text = words_for(*on_host, settings);
  if (fits_as_asked(config, on_host->plan)) return text;
  if (const auto on_drive = with(true)) {
    return concat(text, "; ", words_for(*on_drive, settings));
  }
  // A drive spares the host's memory, and none of the device's.
  const bool lacks_host = std::ranges::any_of(
      on_host->plan.shortages, [](const auto& shortage) { return shortage.store == Store::host; });
  const bool may_help = config.offload.nvme_path.empty() && lacks_host &&
                        !needed_levels("a drive", stage, true).empty();
  if (!may_help) return text;
  return concat(
      text, "; the optimizer could go to a drive instead: set dstune.nvme_path to a folder on it");
}

TuningConfig with_offload(TuningConfig config, const Machine& machine,
                          const MemoryPredictor& predictor, const DryRunner& dry_run) {
  const OffloadSearch& search = config.offload;
  const bool if_needed = search.when == OffloadWhen::if_needed;
  if (search.when == OffloadWhen::never || !has_pool(config.tuner)) return config;
  if (if_needed && machine.memory_limit == 0) return config;
  if (if_needed && machine.is_on_host && !search.is_given) return config;
  const Offloader offloader(config, machine.group_size, predictor, dry_run);
  AddedAxes added;
  for (const int stage : config.stages) {
    if (auto axes = offloader.axes(stage)) added.emplace_back(stage, std::move(*axes));
  }
  std::vector<std::string> notes = {note_on_aio(config, added)};
  if (if_needed) {
    notes = {note_of(config, added, false), note_of(config, added, true), notes.front()};
  }
  for (std::string& note : notes) {
    if (!note.empty()) config.notes.push_back(std::move(note));
  }
  for (auto& [stage, axes] : added) config.space.of_stage[stage].push_back(std::move(axes));
  return config;
}

}  // namespace dstune
