#include "core/train/zero/offload/host_gradient_shards.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/train/zero/offload/host_zeros.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {

HostGradientShards::HostGradientShards(Device& device, const StepConfig& config,
                                       const ShardLayout& layout, HostSubGroups& sub_groups)
    : device_(device),
      dtype_(config.dtype),
      layout_(layout),
      sub_groups_(sub_groups),
      squares_(layout.tensor_count()),
      has_norm_(layout.tensor_count()),
      sum_(device, DType::fp64) {
  HostZeros zeros(device, config.pin_offloaded_optimizer);
  tier_ = zeros.tier();
  shards_ = zeros.make_only(MemoryCategory::gradients, layout.numel(), dtype_);
  for (const SubGroup& group : layout.sub_groups()) {
    for (const std::size_t tensor : group.tensors) {
      squares_[tensor] = std::make_unique<Scalar>(device, DType::fp64);
    }
  }
}

void HostGradientShards::take(std::size_t tensor, Tensor averaged) {
  const Tensor kept = all().slice(layout_.offset(tensor), averaged.numel);
  on_device_.push_back(std::make_shared<const Buffer>(
      make_buffer(device_, MemoryCategory::temporaries, averaged.numel, averaged.dtype)));
  const Tensor own = on_device_.back()->tensor(averaged.dtype);
  const auto down = [&](Tensor from) {
    device_.transfer(
        {from, kept, Transfer::device_to_host, TransferPurpose::gradient_shard, tier_});
  };
  const auto up = [&] {
    device_.transfer({kept, own, Transfer::host_to_device, TransferPurpose::gradient_shard, tier_});
  };
  if (is_first_) {
    down(averaged);
    up();
  } else {
    up();
    device_.run(MemoryPass::accumulate, Add{own, averaged});
    down(own);
  }
  if (is_last_) send(tensor, own);
}

void HostGradientShards::send(std::size_t tensor, Tensor gradient) {
  squares_[tensor]->set_zero();
  add_squares_in_double(device_, gradient, squares_[tensor]->tensor());
  has_norm_[tensor] = true;
  sub_groups_.take(tensor, gradient, on_device_.back());
}

// isinf() takes absolute values first.
bool HostGradientShards::has_overflow() {
  flag_ = 0;
  {
    const Buffer magnitudes =
        make_buffer(device_, MemoryCategory::temporaries, all().numel, dtype_, Tier::pageable);
    device_.run_on_host(MemoryPass::overflow_check, Copy{all(), magnitudes.tensor(dtype_)});
    search(magnitudes.tensor(dtype_));
  }
  search(all());
  return flag_ != 0;
}

void HostGradientShards::search(Tensor gradients) {
  const std::int64_t half = gradients.numel / 2;
  const Buffer buffer = make_buffer(device_, MemoryCategory::temporaries, gradients.numel,
                                    DType::int8, Tier::pageable);
  const Tensor mask = buffer.tensor(DType::int8);
  device_.run_on_host(MemoryPass::overflow_check, FindInfOrNan{gradients, flag()});
  device_.run_on_host(MemoryPass::overflow_check, FillZero{mask});
  device_.run_on_host(MemoryPass::overflow_check,
                      Copy{mask.slice(0, half), mask.slice(half, half)});
}

double HostGradientShards::squares(const SubGroup& group) const {
  sum_.set_zero();
  for (const std::size_t tensor : group.tensors) {
    if (!has_norm_[tensor]) continue;
    device_.host_event(HostEvent::optimizer_tensor);
    device_.run(Add{sum_.tensor(), squares_[tensor]->tensor()});
  }
  return device_.read_scalar(sum_.tensor(), HostSync::offload_norm);
}

}  // namespace dstune
