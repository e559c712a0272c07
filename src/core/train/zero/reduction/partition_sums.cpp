#include "core/train/zero/reduction/partition_sums.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {

PartitionSums::PartitionSums(Device& device, const FlatLayouts& layouts, int rank)
    : device_(device), layouts_(layouts), sums_(layouts.size()), ranges_(layouts.tensor_count()) {
  for (std::size_t group = 0; group < layouts.size(); ++group) {
    of_group_.push_back(layouts[group].owned_by(rank));
    for (const OwnedRange& range : of_group_.back()) ranges_[range.tensor] = range;
  }
}

void PartitionSums::ensure(std::size_t group) {
  if (sums_[group]) return;
  sums_[group] =
      make_buffer(device_, MemoryCategory::gradients, layouts_[group].partition(), DType::fp32);
  sums_[group].used_on(Stream::compute);  // of the update
  device_.run(MemoryPass::accumulate, FillZero{sums_[group].tensor(DType::fp32)});
}

Tensor PartitionSums::sum_of(std::size_t tensor) {
  const std::size_t group = layouts_.group_of(tensor);
  ensure(group);
  return part(group, ranges_[tensor].value());
}

void PartitionSums::add(std::size_t tensor, Tensor average) {
  Buffer cast;
  if (average.dtype != DType::fp32) {
    cast = make_buffer(device_, MemoryCategory::temporaries, average.numel, DType::fp32);
    device_.run(MemoryPass::accumulate, Cast{average, cast.tensor(DType::fp32)});
    average = cast.tensor(DType::fp32);
  }
  device_.run(MemoryPass::accumulate, Add{sum_of(tensor), average});
}

void PartitionSums::end_micro_step(bool boundary) {
  if (!boundary) return;
  for (std::size_t group = 0; group < sums_.size(); ++group) ensure(group);
}

void PartitionSums::find_overflow(Tensor flag) const {
  for (std::size_t group = 0; group < sums_.size(); ++group) {
    for (const OwnedRange& range : of_group_[group]) {
      find_overflow_by_extremes(device_, part(group, range), flag);
    }
  }
}

void PartitionSums::add_squares(std::size_t group, Tensor squares) const {
  for (const OwnedRange& range : of_group_[group]) {
    device_.host_event(HostEvent::optimizer_tensor);
    add_squares_in_double(device_, part(group, range), squares);
  }
}

Buffer PartitionSums::flattened(std::size_t group) { return std::move(sums_[group]); }

void PartitionSums::drop() {
  for (Buffer& sum : sums_) sum.reset();
}

}  // namespace dstune
