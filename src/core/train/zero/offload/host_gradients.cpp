#include "core/train/zero/offload/host_gradients.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/offload/host_zeros.hpp"
#include "core/train/zero/offload/send_gradient.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {

HostGradients::HostGradients(Device& device, const StepConfig& config, const FlatLayouts& layouts,
                             int rank, const OnDevice& on_device, HostPartition& partition)
    : device_(device),
      dtype_(config.dtype),
      sums_(on_device.sums),
      sums_on_host_(config.stage == 2 && sums_ == nullptr),
      partition_(partition),
      place_of_(layouts.tensor_count()),
      returned_(make_buffer(device, MemoryCategory::buckets, on_device.largest, config.dtype)),
      flag_(device, DType::uint8) {
  returned_.used_on(Stream::reduction);
  for (std::size_t group = 0; group < layouts.size(); ++group) {
    for (const OwnedRange& range : layouts[group].owned_by(rank)) {
      place_of_[range.tensor] = held_.size();
      held_.push_back({group, range, std::make_unique<Scalar>(device, DType::fp64), {}});
    }
  }
}

void HostGradients::take(const GradientBucket::Entry& entry) {
  Held& held = held_[place_of_[entry.tensor].value()];
  if (sums_on_host_ && (micro_step_ > 0 || !boundary_)) accumulate(held, entry.gradient);
  if (!boundary_) return;
  if (sums_ == nullptr) {
    finish(held, entry.gradient.slice(held.range.tensor_offset, held.range.numel), entry.gradient);
  } else {
    const Tensor sum = sums_->sum_of(entry.tensor);
    finish(held, sum, sum);
  }
}

void HostGradients::finish(const Held& held, Tensor own, Tensor searched) {
  held.squares->set_zero();
  add_squares_in_double(device_, own, held.squares->tensor());
  look_for_overflow(searched);
  send(held, own);
}

void HostGradients::await_copies() {
  if (!copied_) return;
  device_.host_sync(HostSync::offload_copy, *copied_);
  copied_.reset();
}

// One copy after the other: a pageable sum might be read before the device has waited.
void HostGradients::accumulate(Held& held, Tensor gradient) {
  await_copies();
  const Tier tier = partition_.tier();
  if (!held.sum) {
    HostZeros zeros(device_, tier == Tier::pinned);
    held.sum = zeros.make(MemoryCategory::gradients, gradient.numel, dtype_);
  }
  const Tensor sum = held.sum.tensor(dtype_);
  if (micro_step_ > 0) {
    const Tensor returned = returned_.tensor(dtype_).slice(0, gradient.numel);
    device_.transfer(
        {sum, returned, Transfer::host_to_device, TransferPurpose::gradient_sum, tier});
    device_.run(MemoryPass::accumulate, Add{gradient, returned});
  }
  device_.transfer({gradient, sum, Transfer::device_to_host, TransferPurpose::gradient_sum, tier});
  copied_ = device_.record(device_.current_stream());
}

void HostGradients::look_for_overflow(Tensor gradient) {
  flag_.set_zero();
  find_overflow_by_extremes(device_, gradient, flag_.tensor());
  if (device_.read_scalar(flag_.tensor(), HostSync::offload_overflow) > 0) has_overflow_ = true;
}

void HostGradients::send(const Held& held, Tensor gradient) {
  const Tensor place =
      partition_.gradients(held.group).slice(held.range.partition_offset, held.range.numel);
  send_gradient(device_, gradient, place, partition_.tier());
  copied_ = device_.record(device_.current_stream());
}

double HostGradients::squares(std::size_t group) const {
  double sum = 0;
  for (const Held& held : held_) {
    if (held.group != group) continue;
    device_.host_event(HostEvent::optimizer_tensor);
    sum += device_.read_scalar(held.squares->tensor(), HostSync::offload_norm);
  }
  return sum;
}

}  // namespace dstune
