// What the search keeps in the host's memory or on a drive where the file does not say it
// (dstune.offload).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/search/feasibility/machine.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// A stage with some of its states in the host's memory or on a drive.
struct OffloadedStage {
  OffloadLevel level = OffloadLevel::optimizer;
  OffloadSettings settings;
  StagePlan plan;
};

/// Whether a micro-batch of the user's list, or any if he gave none, fits by `plan`.
bool fits_as_asked(const TuningConfig& config, const StagePlan& plan);

/// The stage with the first of `levels` that makes a micro-batch fit; if none does, with the first
/// for which the device has room, or else with the last. What is pinned is rounded up, so that
/// pageable memory is tried where the host's is what is short; and so are smaller sub-groups with a
/// drive, unless the file has a size. Nothing if the stage cannot be offloaded with the file's
/// settings.
std::optional<OffloadedStage> least_offload(const TuningConfig& config, int group_size, int stage,
                                            const std::vector<OffloadLevel>& levels,
                                            const MemoryPredictor& predictor);

/// A sentence on that, for a plan of a stage that does not fit; "" if there is nothing to say: with
/// the host's memory, and where that is not enough with the drive of dstune.nvme_path. A
/// configuration that offloads nothing has no limit of the host's memory but the user's.
std::string offload_advice(TuningConfig config, const Machine& machine, int stage,
                           const MemoryPredictor& predictor);

/// Adds to the spaces of `config` what it says to offload: in all stages of which dstune.offload
/// says so, or in those of which nothing fits on the device alone. The latter is not done by itself
/// on a backend whose devices live in the host's memory, and takes a tuner that searches spaces.
/// What was added for want of memory is a note, and where a drive is used without an "aio" section
/// how to find one.
/// @param predictor, dry_run  as for plan_stages() and make_pool()
TuningConfig with_offload(TuningConfig config, const Machine& machine,
                          const MemoryPredictor& predictor, const DryRunner& dry_run);

}  // namespace dstune
