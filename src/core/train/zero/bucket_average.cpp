#include "core/train/zero/bucket_average.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/device/dry/repeated_work.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/reduction/flattened.hpp"
#include "core/train/zero/reduction/gradient_sum.hpp"

namespace dstune {
namespace {

/// A stretch of a bucket that one rank owns, or stretches of equal length that as many neighbouring
/// ranks own. In the latter case this rank is not among the owners, and none of them has another
/// part of the bucket's tensor.
struct Slice {
  int owner = 0;
  Tensor values;  ///< the stretches of all owners
  int owners = 1;
  std::size_t tensor = 0;  ///< the first of the tensors that it is of

  std::int64_t each() const { return values.numel / owners; }
  Slice part(int first, int count) const {
    return {owner + first, values.slice(first * each(), count * each()), count, tensor};
  }
};

class Average : public BucketAverage {
 protected:
  Average(const EngineContext& context, GradientScaling scaling, PartitionSums* sums)
      : device_(*context.device),
        scaling_(scaling),
        sum_{device_, *context.collectives, context.config.message_dtype()},
        sums_(sums) {}

  Device& device() const { return device_; }
  const GradientScaling& scaling() const { return scaling_; }
  const GradientSum& sum() const { return sum_; }
  int rank() const { return sum_.collectives.rank(); }
  PartitionSums* sums() const { return sums_; }
  /// Adds to the sums what this rank owns of whole tensors, which lie one after the other.
  GradientSum::Take taking_of(const GradientBucket& bucket) const {
    if (sums_ == nullptr) return {};
    return [this, &bucket](Tensor average) {
      std::int64_t offset = 0;
      for (const auto& entry : bucket.entries()) {
        if (const auto& range = sums_->range_of(entry.tensor)) {
          sums_->add(entry.tensor, average.slice(offset + range->tensor_offset, range->numel));
        }
        offset += entry.gradient.numel;
      }
    };
  }

 private:
  Device& device_;
  GradientScaling scaling_;
  GradientSum sum_;
  PartitionSums* sums_;
};

class ListAverage final : public Average {
 public:
  ListAverage(const EngineContext& context, PartitionSums* sums)
      : Average(context, division_first(context.config, context.collectives->size()), sums) {}

  void average(const GradientBucket& bucket) const override {
    std::vector<Tensor> gradients;
    gradients.reserve(bucket.entries().size());
    for (const auto& entry : bucket.entries()) gradients.push_back(entry.gradient);
    const Flattened flat(device(), std::move(gradients));
    sum().all_reduce(flat.tensor(), scaling(), taking_of(bucket));
    flat.copy_back();
  }
};

class WholeAverage final : public Average {
 public:
  WholeAverage(const EngineContext& context, PartitionSums* sums)
      : Average(context, configured_scaling(context.config, context.collectives->size()), sums) {}

  void average(const GradientBucket& bucket) const override {
    sum().all_reduce(bucket.contents(), scaling(), taking_of(bucket));
  }
};

/// Divides the gradients in the bucket and cuts it by owners; neighbours of one owner are one
/// slice, but for those that are added to sums.
class SliceAverage : public Average {
 public:
  void average(const GradientBucket& bucket) const final {
    const Tensor contents = bucket.contents();
    if (scaling().before) device().run(MemoryPass::average, Scale{contents, *scaling().before});
    std::vector<Slice> slices;
    std::int64_t offset = 0;
    for (const auto& entry : bucket.entries()) {
      for (const auto& piece : layouts_.of(entry.tensor).pieces(entry.tensor)) {
        const std::int64_t numel = piece.numel * piece.owners;
        cut({piece.owner, contents.slice(offset, numel), piece.owners, entry.tensor}, slices);
        offset += numel;
      }
    }
    reduce(slices);
  }

 protected:
  SliceAverage(const EngineContext& context, const FlatLayouts& layouts, PartitionSums* sums)
      : Average(context, division_first(context.config, context.collectives->size()), sums),
        layouts_(layouts) {}

  bool is_summed(int owner) const { return sums() != nullptr && owner == rank(); }

 private:
  virtual void reduce(const std::vector<Slice>& slices) const = 0;

  // Where work is folded, only this rank's slices and those that may have neighbours of the same
  // owner must stand alone.
  void cut(const Slice& whole, std::vector<Slice>& slices) const {
    const int count = whole.owners;
    const int own = rank() - whole.owner;
    std::array<int, 5> ends = {1, own, own + 1, count - 1, count};
    std::sort(ends.begin(), ends.end());
    int begin = 0;
    for (const int end : ends) {
      if (end > count) break;
      const int step = device().folds() ? end - begin : 1;
      for (; begin < end; begin += step) append(whole.part(begin, step), slices);
    }
  }

  void append(const Slice& slice, std::vector<Slice>& slices) const {
    const bool alone = slice.owners == 1 && !slices.empty() && slices.back().owners == 1;
    if (alone && slices.back().owner == slice.owner && !is_summed(slice.owner)) {
      slices.back().values.numel += slice.values.numel;
    } else {
      slices.push_back(slice);
    }
  }

  const FlatLayouts& layouts_;
};

class AllReducedSlices final : public SliceAverage {
 public:
  AllReducedSlices(const EngineContext& context, const FlatLayouts& layouts, PartitionSums* sums)
      : SliceAverage(context, layouts, sums), capacity_(context.config.reduce_bucket_size) {}

 private:
  void reduce(const std::vector<Slice>& slices) const override {
    std::vector<Slice> run;
    std::int64_t fill = 0;
    for (const Slice& slice : slices) {
      for (int begin = 0; begin < slice.owners;) {
        const std::int64_t left = slice.owners - begin;
        const std::int64_t missing = (capacity_ - fill) / slice.each() + 1;
        if (run.empty() && missing < left) {  // whole runs are made of this slice alone
          const auto count = static_cast<int>(missing);
          repeat(device(), left / missing, [&](std::int64_t i) {
            reduce_run({slice.part(begin + static_cast<int>(i) * count, count)});
          });
          begin += static_cast<int>(left / missing) * count;
          continue;
        }
        const auto count = static_cast<int>(std::min(missing, left));
        run.push_back(slice.part(begin, count));
        begin += count;
        fill += count * slice.each();
        if (fill <= capacity_) continue;
        reduce_run(run);
        run.clear();
        fill = 0;
      }
    }
    if (!run.empty()) reduce_run(run);
  }

  void reduce_run(const std::vector<Slice>& run) const {
    std::vector<Tensor> parts;
    parts.reserve(run.size() + 1);
    for (const Slice& slice : run) parts.push_back(slice.values);
    if (run.size() == 1 && run.front().owners > 1) {  // slices of several owners are no view
      parts = {run.front().part(0, 1).values, run.front().part(1, run.front().owners - 1).values};
    }
    const Flattened flat(device(), std::move(parts));
    sum().all_reduce(flat.tensor(), {}, [&](Tensor average) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (!is_summed(run[i].owner)) continue;
        sums()->add(run[i].tensor, average.slice(flat.offset(i), run[i].values.numel));
      }
    });
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (run[i].owner == rank()) flat.copy_back(i);
    }
  }

  std::int64_t capacity_;
};

class ReducedSlices final : public SliceAverage {
 public:
  ReducedSlices(const EngineContext& context, const FlatLayouts& layouts, PartitionSums* sums)
      : SliceAverage(context, layouts, sums), overlaps_(context.config.overlap_comm) {}

 private:
  /// The slices of neighbouring ranks, each of which owns as many elements.
  struct Owners {
    int first = 0;
    int count = 1;
    std::vector<Tensor> parts;         // the slices of the first owner
    std::vector<std::size_t> tensors;  // of which they are
  };

  // The slices of one owner exceed the capacity together only in an extra-large tensor, of which
  // the owner has one slice: it always takes one call.
  void reduce(const std::vector<Slice>& slices) const override {
    for (const Owners& owners : by_owner(slices)) {
      repeat(device(), owners.count, [&](std::int64_t) { reduce_to(owners); });
    }
  }

  // The owners in the order of their first slices. Slices of several owners are cut where others
  // begin or end.
  static std::vector<Owners> by_owner(const std::vector<Slice>& slices) {
    std::set<int> borders;
    for (const Slice& slice : slices) borders.insert({slice.owner, slice.owner + slice.owners});
    std::vector<Owners> list;
    std::map<int, std::size_t> place_of;  // by the first owner
    for (const Slice& slice : slices) {
      const int end = slice.owner + slice.owners;
      for (auto first = borders.find(slice.owner); *first < end; ++first) {
        const int count = *std::next(first) - *first;
        const auto [place, is_new] = place_of.emplace(*first, list.size());
        if (is_new) list.push_back({*first, count, {}, {}});
        list[place->second].parts.push_back(slice.part(*first - slice.owner, 1).values);
        list[place->second].tensors.push_back(slice.tensor);
      }
    }
    return list;
  }

  void reduce_to(const Owners& owners) const {
    if (overlaps_) device().host_sync(HostSync::reduction);
    const Flattened flat(device(), owners.parts);
    sum().reduce(flat.tensor(), owners.first, [&](Tensor average) {
      for (std::size_t i = 0; i < owners.parts.size() && is_summed(owners.first); ++i) {
        sums()->add(owners.tensors[i], average.slice(flat.offset(i), owners.parts[i].numel));
      }
    });
    if (owners.first == rank()) flat.copy_back();
  }

  bool overlaps_;
};

}  // namespace

std::unique_ptr<BucketAverage> make_bucket_average(const EngineContext& context,
                                                   const FlatLayouts& layouts,
                                                   PartitionSums* sums) {
  const StepConfig& config = context.config;
  if (!config.contiguous_gradients) return std::make_unique<ListAverage>(context, sums);
  if (!config.reduce_scatter) return std::make_unique<WholeAverage>(context, sums);
  if (config.use_multi_rank_bucket_allreduce) {
    return std::make_unique<AllReducedSlices>(context, layouts, sums);
  }
  return std::make_unique<ReducedSlices>(context, layouts, sums);
}

}  // namespace dstune
