#include "core/train/zero/reduction/partition_gradients.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/reduction/gradient_passes.hpp"

namespace dstune {

PartitionGradients::PartitionGradients(Device& device, DType dtype,
                                       const ModelParameters& parameters,
                                       const FlatLayouts& layouts, int rank, bool contiguous)
    : device_(device),
      layouts_(layouts),
      dtype_(dtype),
      contiguous_(contiguous),
      offsets_(parameters.tensors.size(), -1),
      numels_(parameters.tensors.size()) {
  for (std::size_t group = 0; group < layouts.size(); ++group) {
    ranges_.push_back(layouts[group].owned_by(rank));
    for (const OwnedRange& range : ranges_.back()) {
      offsets_[range.tensor] = numel_;
      numels_[range.tensor] = parameters.tensors[range.tensor].numel();
      numel_ += numels_[range.tensor];
    }
  }
}

void PartitionGradients::start() {
  current_.dtype = dtype_;
  current_.filled = true;
  if (contiguous_) {
    current_.together = make_buffer(device_, MemoryCategory::gradients, numel_, dtype_);
    current_.together.used_on(Stream::compute);  // where they are summed, and used by the update
  } else {
    current_.own.resize(offsets_.size());
  }
}

void PartitionGradients::take(GradientBucket::Entry& entry) {
  if (!current_.filled) start();
  if (contiguous_) {
    device_.run(MemoryPass::partition_copy, Copy{entry.gradient, whole(current_, entry.tensor)});
  } else {
    current_.own[entry.tensor] = std::move(entry.own);
  }
}

void PartitionGradients::end_micro_step(bool /*boundary*/) {
  if (!sum_.filled) {
    sum_ = std::exchange(current_, {});
    return;
  }
  for (const auto& group : ranges_) {
    for (const OwnedRange& range : group) {
      device_.run(MemoryPass::accumulate,
                  Add{whole(sum_, range.tensor), whole(current_, range.tensor)});
    }
  }
  current_ = {};
}

void PartitionGradients::accumulate_into(std::vector<Buffer>& sums, DType dtype) {
  sum_.dtype = dtype;
  sum_.filled = true;
  sum_.own.resize(offsets_.size());
  for (const auto& group : ranges_) {
    for (const OwnedRange& range : group) {
      device_.run(MemoryPass::partition_copy,
                  Cast{whole(current_, range.tensor), sums[range.tensor].tensor(dtype)});
      sum_.own[range.tensor] = std::move(sums[range.tensor]);
    }
  }
  current_ = {};
}

Tensor PartitionGradients::whole(const Set& set, std::size_t tensor) const {
  if (set.together) {
    return set.together.tensor(set.dtype).slice(offsets_[tensor], numels_[tensor]);
  }
  return set.own[tensor].tensor(set.dtype);
}

Tensor PartitionGradients::sum(const OwnedRange& range) const {
  return whole(sum_, range.tensor).slice(range.tensor_offset, range.numel);
}

void PartitionGradients::find_overflow(Tensor flag) const {
  for (const auto& group : ranges_) {
    for (const OwnedRange& range : group) find_overflow_by_extremes(device_, sum(range), flag);
  }
}

void PartitionGradients::add_squares(std::size_t group, Tensor squares) const {
  for (const OwnedRange& range : ranges_[group]) {
    device_.host_event(HostEvent::optimizer_tensor);
    add_squares_in_double(device_, sum(range), squares);
  }
}

Tensor PartitionGradients::flatten(std::size_t group, Tensor all) const {
  std::int64_t filled = 0;
  for (const OwnedRange& range : ranges_[group]) {
    device_.run(MemoryPass::master_gradient,
                Copy{sum(range), all.slice(range.partition_offset, range.numel)});
    filled = range.partition_offset + range.numel;
  }
  if (filled < all.numel) {
    device_.run(MemoryPass::master_gradient, FillZero{all.slice(filled, all.numel - filled)});
  }
  return all;
}

Buffer PartitionGradients::flattened(std::size_t group) {
  const std::int64_t numel = layouts_[group].partition();
  const DType dtype = sum_.dtype;
  Buffer flat = make_buffer(device_, MemoryCategory::temporaries, numel, dtype);
  const Tensor all = flatten(group, flat.tensor(dtype));
  Buffer single;
  if (dtype != DType::fp32) {
    single = make_buffer(device_, MemoryCategory::temporaries, numel, DType::fp32);
    device_.run(MemoryPass::master_gradient, Cast{all, single.tensor(DType::fp32)});
  }
  // One set holds the gradients of all groups.
  if (group + 1 == ranges_.size()) drop();
  return dtype == DType::fp32 ? std::move(flat) : std::move(single);
}

}  // namespace dstune
