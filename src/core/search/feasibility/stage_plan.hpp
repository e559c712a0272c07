// The memory that one rank needs in each ZeRO stage, and the largest micro-batch that fits, found
// without running.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/device/device.hpp"
#include "core/device/memory/host_memory.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/search/feasibility/shortage.hpp"

namespace dstune {

/// Says what `experiment` needs on `rank` of its group: Measured (of which only peak_memory means
/// something), OutOfMemory or Skipped. A call is local and fast. Tests give predictors of their
/// own.
using MemoryPredictor = std::function<Outcome(const Experiment& experiment, int rank)>;

/// A predictor that runs the real step's code dry.
/// @param imitated  the device whose scratch memory is counted, which must outlive the predictor;
///                  null: a GPU with fused kernels
MemoryPredictor make_memory_predictor(const Device* imitated = nullptr);

/// The group ranks whose memory stands for that of all, ascending: see plan_stages().
std::vector<int> ranks_to_look_at(int group_size);

/// The memory of one stage at micro-batch 1, and the largest micro-batch that fits, by dry run.
struct StagePlan {
  int stage = 0;
  Bytes memory_bytes_per_rank = 0;  ///< model states, buckets and step temporaries at the moment of
                                    ///< the peak; no activations
  /// Bytes that one more sample adds to the activations.
  Bytes activation_bytes_per_micro_batch = 0;
  bool feasible = false;             ///< a micro-batch that the user allows fits
  std::int64_t max_micro_batch = 0;  ///< largest that fits by dry run, within the user's limits,
                                     ///< and makes the fixed batch if there is one; 0: none
  std::int64_t max_micro_batch_of_leanest = 0;  ///< see with_leanest(); 0: none, or not looked for
  PeakMemory peak;                              ///< the peak of the group's rank 0 at micro-batch 1
  PeakHostMemory peak_host = {};  ///< of the rank that needs most; nothing: nothing is offloaded
  /// What is too small of the limits beside the device's (RunSettings::host_limits).
  std::vector<HostShortage> shortages = {};
  bool fits_on_host() const { return shortages.empty(); }
  std::string advice;             ///< of a stage that does not fit: what would make it, or ""
  bool pins_in_any_case = false;  ///< something is pinned whatever pin_memory says
  std::string unsupported;  ///< why the stage cannot run at all with the user's settings; or ""
};

/// The stores that are too small for the least that the user wants of a stage.
/// @param memory_limit  of the device; 0: not known
Stores full_stores(const StagePlan& plan, Bytes memory_limit);

/// Makes a plan for each of config.stages, without running anything. With settings.memory_limit 0
/// (not known) every stage is feasible up to the user's limits.
///
/// The largest micro-batch is exact for the ranks that are looked at: all ranks in groups of up to
/// four; the first two, the middle and the last rank in larger ones (shards differ only by padding
/// and by the tensors at their ends).
///
/// @param group_size  ranks per experiment, >= 1
/// @throws ConfigError  if the fixed batch, max_train_batch_size or the micro-batch limits leave no
///                      micro-batch
std::vector<StagePlan> plan_stages(const TuningConfig& config, int group_size,
                                   const MemoryPredictor& predictor = make_memory_predictor());

}  // namespace dstune
