// How stages 1 and 2 average a bucket over the ranks (docs/deepspeed-step.md, "Averaging a
// bucket").
#pragma once

#include <memory>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/reduction/gradient_bucket.hpp"
#include "core/train/zero/reduction/partition_sums.hpp"

namespace dstune {

class BucketAverage {
 public:
  virtual ~BucketAverage() = default;

  /// Averages a bucket, all on the current stream. Afterwards the parts of its gradients that this
  /// rank owns are averages; the others are undefined.
  /// @param bucket  not empty
  virtual void average(const GradientBucket& bucket) const = 0;
};

/// Makes the average of the first line whose setting is in force, with K = reduce_bucket_size:
///
///   contiguous_gradients = false      flatten all, divide, one all-reduce, copy all back
///   reduce_scatter = false            one all-reduce in place, scaled as configured
///   use_multi_rank_bucket_allreduce   divide; one all-reduce per run of slices whose sum exceeds
///                                     K: of the whole bucket, or of each part of an extra-large
///                                     tensor; copy this rank's slices back
///   otherwise                         divide; one reduce to every owner of a part
///
/// What this rank owns is added to `sums` as it comes out of the collectives, too. Its slices then
/// stay apart where others of one owner are neighbours.
///
/// @param layouts  must outlive the result
/// @param sums     null: there are none; must outlive the result
std::unique_ptr<BucketAverage> make_bucket_average(const EngineContext& context,
                                                   const FlatLayouts& layouts, PartitionSums* sums);

}  // namespace dstune
