#include "core/train/zero/reduction/gradient_shards.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

DeviceGradientShards::DeviceGradientShards(const StepConfig& config, Device& device,
                                           Collectives* replicas, const ShardLayout& layout)
    : device_(device),
      dtype_(config.accumulation_dtype()),
      replicas_(replicas),
      layout_(layout),
      shards_(make_buffer(device, MemoryCategory::gradients, layout.numel(), dtype_)) {
  device.run(FillZero{all()});
}

void DeviceGradientShards::take(std::size_t tensor, Tensor averaged) {
  const Tensor kept = shard(tensor).slice(0, averaged.numel);
  sum_up(averaged, kept);
  if (replicas_ != nullptr && is_last_) taken_.push_back(kept);
}

void DeviceGradientShards::sum_up(Tensor averaged, Tensor kept) const {
  const bool same = kept.dtype == averaged.dtype;
  if (is_first_ && same) {
    device_.run(MemoryPass::partition_copy, Copy{averaged, kept});
  } else if (is_first_) {
    device_.run(MemoryPass::partition_copy, Cast{averaged, kept});
  } else if (same) {
    device_.run(MemoryPass::accumulate, Add{kept, averaged});
  } else {
    const Buffer cast =
        make_buffer(device_, MemoryCategory::temporaries, averaged.numel, kept.dtype);
    device_.run(MemoryPass::accumulate, Cast{averaged, cast.tensor(kept.dtype)});
    device_.run(MemoryPass::accumulate, Add{kept, cast.tensor(kept.dtype)});
  }
}

void DeviceGradientShards::end_flush() {
  if (replicas_ == nullptr || !is_last_) return;
  CoalescedCalls one_launch(*replicas_);
  for (const Tensor& own : taken_) {
    device_.run(MemoryPass::average, Scale{own, 1.0 / replicas_->size()});
    replicas_->all_reduce(own, ReduceOp::sum, Purpose::gradients);
  }
  device_.await(one_launch.end());
  taken_.clear();
}

}  // namespace dstune
