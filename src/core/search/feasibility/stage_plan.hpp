// Per ZeRO stage: what one rank needs, and the largest micro-batch that fits, without running.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/device/device.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// What `experiment` needs on `rank` of its group: Measured (peak_memory counts, times do not),
/// OutOfMemory or Skipped. Local and fast. Tests give their own.
using MemoryPredictor = std::function<Outcome(const Experiment& experiment, int rank)>;

/// The dry run of the real step's code.
/// @param imitated  the device whose scratch is counted, which must outlive the predictor; none: a
///                  GPU with fused kernels
MemoryPredictor make_memory_predictor(const Device* imitated = nullptr);

/// A limit above any device, and far enough from the end of the range for sums.
constexpr Bytes kUnlimited = Bytes{1} << 60U;

/// The group ranks whose memory stands for that of all, ascending: see plan_stages().
std::vector<int> ranks_to_look_at(int group_size);

/// One stage's memory at micro-batch 1 and how many micro-batches fit, by dry run.
struct StagePlan {
  int stage = 0;
  Bytes memory_bytes_per_rank = 0;  ///< model states, buckets and step temporaries at the moment of
                                    ///< the peak; no activations
  Bytes activation_bytes_per_micro_batch = 0;  ///< what one sample more adds to the activations
  bool feasible = false;                       ///< some micro-batch the user allows fits
  std::int64_t max_micro_batch =
      0;  ///< largest that fits by dry run, within the user's limits; 0: none
  std::int64_t max_micro_batch_of_leanest = 0;  ///< see with_leanest(); 0: none, or not looked for
  PeakMemory peak;                              ///< of group rank 0 at micro-batch 1
  std::string unsupported;  ///< why the stage cannot run at all with the user's settings; or ""
};

/// A plan for each of config.stages. Local: runs nothing. With settings.memory_limit 0 (not known)
/// every stage is feasible up to the user's limits.
///
/// The largest micro-batch is exact for the ranks that are looked at: all in groups of up to four,
/// the first two, the middle and the last in larger ones (shards differ by padding and by the
/// tensors at their ends only).
///
/// @param group_size  ranks per experiment, >= 1
/// @throws ConfigError  if max_train_batch_size or the micro-batch limits leave no micro-batch
std::vector<StagePlan> plan_stages(const TuningConfig& config, int group_size,
                                   const MemoryPredictor& predictor = make_memory_predictor());

}  // namespace dstune
