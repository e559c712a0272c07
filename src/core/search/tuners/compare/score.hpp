// Defines "better": the metric's value, and when a difference is more than noise.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// The value of `metric`, of which a larger one is better: samples/s, tokens/s, FLOP/s per rank, or
/// negated seconds per optimizer step. Latency is that of a whole step whatever its batch, as in
/// DeepSpeed: a smaller micro-batch has less to do and usually wins, unless train_batch_size is
/// what the user fixes.
double score(Metric metric, const Measured& measured);

/// How much better `challenger` is than `incumbent` (both values of score()), relative to the
/// incumbent: 0.05 is 5 % more throughput or 5 % less time; negative if it is worse.
double relative_gain(double challenger, double incumbent);

/// The relative gain that counts must exceed this: the larger of 1 % and what the steps of two
/// single measurements leave open of their difference (1.96 standard errors: relative_error(), root
/// of the sum of squares), which counts for 5 % at most. It knows nothing of what differs from run
/// to run.
double noise_threshold(const Measured& a, const Measured& b);

/// True if `challenger` is better by more than noise. Otherwise the incumbent stays, so that
/// repeated runs agree.
bool is_clearly_better(Metric metric, const Measured& challenger, const Measured& incumbent);

}  // namespace dstune
