#include "core/train/zero/bucket_average.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/train/zero/flattened.hpp"
#include "core/train/zero/gradient_scaling.hpp"
#include "core/train/zero/gradient_sum.hpp"
#include "core/train/zero/passes.hpp"

namespace dstune {
namespace {

/// A stretch of a bucket that one rank owns.
struct Slice {
  int owner = 0;
  Tensor values;
};

class Average : public BucketAverage {
 protected:
  Average(const EngineContext& context, GradientScaling scaling)
      : device_(*context.device),
        scaling_(scaling),
        sum_{device_, *context.collectives,
             context.config.overlap_comm ? Stream::reduction : Stream::compute,
             context.config.message_dtype()} {}

  Device& device() const { return device_; }
  const GradientScaling& scaling() const { return scaling_; }
  const GradientSum& sum() const { return sum_; }
  int rank() const { return sum_.collectives.rank(); }

 private:
  Device& device_;
  GradientScaling scaling_;
  GradientSum sum_;
};

class ListAverage final : public Average {
 public:
  explicit ListAverage(const EngineContext& context)
      : Average(context, division_first(context.config, context.collectives->size())) {}

  void average(const GradientBucket& bucket) const override {
    std::vector<Tensor> gradients;
    gradients.reserve(bucket.entries().size());
    for (const auto& entry : bucket.entries()) gradients.push_back(entry.gradient);
    const Flattened flat(device(), std::move(gradients));
    sum().all_reduce(flat.tensor(), scaling());
    flat.copy_back();
  }
};

class WholeAverage final : public Average {
 public:
  explicit WholeAverage(const EngineContext& context)
      : Average(context, configured_scaling(context.config, context.collectives->size())) {}

  void average(const GradientBucket& bucket) const override {
    sum().all_reduce(bucket.contents(), scaling());
  }
};

/// Divides in the bucket and cuts it by owners; neighbours of one owner are one slice.
class SliceAverage : public Average {
 public:
  void average(const GradientBucket& bucket) const final {
    const Tensor contents = bucket.contents();
    if (scaling().before) Passes(device()).scale(Pass::average, contents, *scaling().before);
    std::vector<Slice> slices;
    std::int64_t offset = 0;
    for (const auto& entry : bucket.entries()) {
      for (const auto& piece : layouts_.of(entry.tensor).pieces(entry.tensor)) {
        if (slices.empty() || slices.back().owner != piece.owner) {
          slices.push_back({piece.owner, contents.slice(offset, 0)});
        }
        slices.back().values.numel += piece.numel;
        offset += piece.numel;
      }
    }
    reduce(slices);
  }

 protected:
  SliceAverage(const EngineContext& context, const FlatLayouts& layouts)
      : Average(context, division_first(context.config, context.collectives->size())),
        layouts_(layouts) {}

 private:
  virtual void reduce(const std::vector<Slice>& slices) const = 0;

  const FlatLayouts& layouts_;
};

class AllReducedSlices final : public SliceAverage {
 public:
  AllReducedSlices(const EngineContext& context, const FlatLayouts& layouts)
      : SliceAverage(context, layouts), capacity_(context.config.reduce_bucket_size) {}

 private:
  void reduce(const std::vector<Slice>& slices) const override {
    std::vector<Slice> run;
    std::int64_t fill = 0;
    for (const Slice& slice : slices) {
      run.push_back(slice);
      fill += slice.values.numel;
      if (fill <= capacity_) continue;
      reduce_run(run);
      run.clear();
      fill = 0;
    }
    if (!run.empty()) reduce_run(run);
  }

  void reduce_run(const std::vector<Slice>& run) const {
    std::vector<Tensor> parts;
    parts.reserve(run.size());
    for (const Slice& slice : run) parts.push_back(slice.values);
    const Flattened flat(device(), std::move(parts));
    sum().all_reduce(flat.tensor(), {});
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (run[i].owner == rank()) flat.copy_back(i);
    }
  }

  std::int64_t capacity_;
};

class ReducedSlices final : public SliceAverage {
 public:
  ReducedSlices(const EngineContext& context, const FlatLayouts& layouts)
      : SliceAverage(context, layouts), overlaps_(context.config.overlap_comm) {}

 private:
  // An owner's slices together exceed the capacity only in an extra-large tensor, of which it has
  // one slice: always one call.
  void reduce(const std::vector<Slice>& slices) const override {
    std::vector<int> owners;
    for (const Slice& slice : slices) {
      if (std::find(owners.begin(), owners.end(), slice.owner) == owners.end()) {
        owners.push_back(slice.owner);
      }
    }
    for (const int owner : owners) reduce_to(owner, slices);
  }

  void reduce_to(int owner, const std::vector<Slice>& slices) const {
    if (overlaps_) device().host_sync(HostSync::reduction);
    std::vector<Tensor> parts;
    for (const Slice& slice : slices) {
      if (slice.owner == owner) parts.push_back(slice.values);
    }
    const Flattened flat(device(), std::move(parts));
    sum().reduce(flat.tensor(), owner);
    if (owner == rank()) flat.copy_back();
  }

  bool overlaps_;
};

}  // namespace

std::unique_ptr<BucketAverage> make_bucket_average(const EngineContext& context,
                                                   const FlatLayouts& layouts) {
  const StepConfig& config = context.config;
  if (!config.contiguous_gradients) return std::make_unique<ListAverage>(context);
  if (!config.reduce_scatter) return std::make_unique<WholeAverage>(context);
  if (config.use_multi_rank_bucket_allreduce) {
    return std::make_unique<AllReducedSlices>(context, layouts);
  }
  return std::make_unique<ReducedSlices>(context, layouts);
}

}  // namespace dstune
