#include "core/search/space/offload_space.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/text.hpp"
#include "core/config/tuners.hpp"
#include "core/search/space/leanest.hpp"

namespace dstune {
namespace {

StagePlan plan_with(const TuningConfig& config, int group_size, int stage, OffloadLevel level,
                    bool pins, const MemoryPredictor& predictor) {
  TuningConfig own = config;
  json::object deepspeed = config.deepspeed.json();
  for (const Axis& axis : offload_axes(stage, {level}, pins).tied) {
    set_at(deepspeed, keys_of(axis.pointer), axis.values.front());
  }
  own.deepspeed = std::move(deepspeed);
  own.stages = {stage};
  return plan_stages(own, group_size, predictor).front();
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
    const auto least = least_offload(config_, group_size_, stage, predictor_);
    const bool fits = least && fits_as_asked(config_, least->plan);
    // Of a space other points may fit than the one that a plan has of it.
    if (if_needed && !fits && (!least || config_.space.empty())) return std::nullopt;
    if (if_needed && fits) {
      levels.erase(levels.begin(), std::ranges::find(levels, least->level));
    }
    return offload_axes(stage, levels, !fits || least->pins);
  }

 private:
  bool fits_without(int stage) const {
    TuningConfig own = config_;
    own.stages = {stage};
    const StagePlan plan = plan_stages(own, group_size_, predictor_).front();
    if (fits_as_asked(config_, plan) || !plan.unsupported.empty()) return true;
    return !config_.space.empty() &&
           max_micro_batch_of_leanest(config_, group_size_, stage, dry_run_) >=
               least_micro_batch(config_);
  }

  const TuningConfig& config_;
  int group_size_;
  const MemoryPredictor& predictor_;
  const DryRunner& dry_run_;
};

std::string words_for(OffloadLevel level) {
  return level == OffloadLevel::optimizer
             ? "the optimizer in the host's memory (offload_optimizer cpu)"
             : "optimizer and parameters in the host's memory (offload_optimizer, offload_param "
               "cpu)";
}

/// Whether all of the group's points have parameters on the host.
bool has_parameters(const AxisGroup& group) {
  return std::ranges::any_of(group.tied, [](const Axis& axis) {
    return axis.pointer == "/zero_optimization/offload_param/device" &&
           std::ranges::count(axis.values, json::value("none")) == 0;
  });
}

std::string note_of(const TuningConfig& config, const std::vector<std::string>& stages,
                    bool parameters_too) {
  std::string note = concat(
      "nothing of ", stages.size() == 1 ? "stage " : "stages ", join(stages, ", "),
      " fits on the device alone, so that the optimizer",
      parameters_too ? ", in stage 3 with the parameters," : "",
      " is in the host's memory there; \"dstune\": {\"offload\": \"never\"} leaves that out");
  if (config.deepspeed.json().contains("optimizer")) return note;
  return concat(note,
                "; DeepSpeed then wants an \"optimizer\" in the file, or a DeepSpeedCPUAdam of the "
                "script's own");
}

/// "12.00 GiB", and if that is too much "30.00 GiB (too much: 24.00 GiB)".
std::string against(Bytes need, Bytes limit) {
  if (need <= limit) return format_bytes(need);
  return concat(format_bytes(need), " (too much: ", format_bytes(limit), ")");
}

}  // namespace

bool fits_as_asked(const TuningConfig& config, const StagePlan& plan) {
  return plan.feasible && plan.max_micro_batch >= least_micro_batch(config);
}

std::optional<OffloadedStage> least_offload(const TuningConfig& config, int group_size, int stage,
                                            const MemoryPredictor& predictor) {
  std::optional<OffloadedStage> nearest;
  for (const OffloadLevel level : OffloadSearch{}.levels_of(stage)) {
    for (const bool pins : {true, false}) {
      OffloadedStage own{level, pins, plan_with(config, group_size, stage, level, pins, predictor)};
      if (!own.plan.unsupported.empty()) break;
      if (fits_as_asked(config, own.plan)) return own;
      const bool fits_on_host = own.plan.fits_on_host();
      // More offloading is no help where only the host is short.
      const bool was_near = nearest && nearest->level != level && !nearest->plan.fits_on_host() &&
                            nearest->plan.peak.counted() <= config.settings.memory_limit;
      if (!was_near) nearest = std::move(own);
      if (fits_on_host) break;
    }
  }
  return nearest;
}

std::string offload_advice(TuningConfig config, const Machine& machine, int stage,
                           const MemoryPredictor& predictor) {
  RunSettings& settings = config.settings;
  if (settings.is_one_memory()) {
    const int on_a_host = machine.devices_per_node > 0 ? machine.devices_per_node : machine.workers;
    settings.host_memory_limit = users_host_memory_limit(config, on_a_host).value_or(kNoLimit);
  }
  const auto offloaded = least_offload(config, machine.group_size, stage, predictor);
  if (!offloaded) return "";
  const StagePlan& plan = offloaded->plan;
  const std::string what =
      concat(words_for(offloaded->level), offloaded->pins ? "" : ", which is not pinned,");
  const Bytes device = plan.peak.counted();
  const Bytes host = plan.peak_host.held;
  if (plan.feasible) {
    return concat("with ", what, " it fits: ", format_bytes(device), " of the device and ",
                  format_bytes(host), " of the host per rank at micro-batch 1, up to micro-batch ",
                  plan.max_micro_batch);
  }
  // Where both fit at micro-batch 1, the least that the user allows does not.
  return concat("with ", what, " a rank needs ", against(device, settings.memory_limit),
                " of the device and ", against(host, settings.host_memory_limit),
                " of the host at micro-batch 1");
}

TuningConfig with_offload(TuningConfig config, const Machine& machine,
                          const MemoryPredictor& predictor, const DryRunner& dry_run) {
  const OffloadSearch& search = config.offload;
  const bool if_needed = search.when == OffloadWhen::if_needed;
  if (search.when == OffloadWhen::never || !has_pool(config.tuner)) return config;
  if (if_needed && machine.memory_limit == 0) return config;
  if (if_needed && machine.is_on_host && !search.is_given) return config;
  const Offloader offloader(config, machine.group_size, predictor, dry_run);
  std::vector<std::pair<int, AxisGroup>> found;
  for (const int stage : config.stages) {
    if (auto axes = offloader.axes(stage)) found.emplace_back(stage, std::move(*axes));
  }
  std::vector<std::string> stages;
  bool parameters_too = false;
  for (auto& [stage, axes] : found) {
    parameters_too = parameters_too || has_parameters(axes);
    config.space.of_stage[stage].push_back(std::move(axes));
    stages.push_back(std::to_string(stage));
  }
  if (if_needed && !stages.empty()) config.notes.push_back(note_of(config, stages, parameters_too));
  return config;
}

}  // namespace dstune
