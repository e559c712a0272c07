#include "core/train/zero/partition_gradients.hpp"

#include <utility>

#include "core/train/zero/passes.hpp"

namespace dstune {

PartitionGradients::PartitionGradients(Device& device, DType dtype,
                                       const ModelParameters& parameters,
                                       const std::vector<FlatLayout>& layouts, int rank)
    : device_(device), dtype_(dtype), offsets_(parameters.tensors.size(), -1) {
  for (const FlatLayout& layout : layouts) {
    ranges_.push_back(layout.owned_by(rank));
    for (const OwnedRange& range : ranges_.back()) {
      offsets_[range.tensor] = numel_;
      numel_ += parameters.tensors[range.tensor].numel();
    }
  }
}

void PartitionGradients::take(std::size_t tensor, Tensor gradient) {
  if (!current_) current_ = make_buffer(device_, MemoryCategory::gradients, numel_, dtype_);
  Passes(device_).copy(Pass::partition_copy, gradient,
                       current_.tensor(dtype_).slice(offsets_[tensor], gradient.numel));
}

void PartitionGradients::accumulate() {
  if (!sum_) {
    sum_ = std::move(current_);
    return;
  }
  for (const auto& group : ranges_) {
    for (const OwnedRange& range : group) {
      Passes(device_).add(Pass::accumulate, part(sum_, range), part(current_, range));
    }
  }
  current_.reset();
}

Tensor PartitionGradients::sum(const OwnedRange& range) const { return part(sum_, range); }

Tensor PartitionGradients::part(const Buffer& buffer, const OwnedRange& range) const {
  return buffer.tensor(dtype_).slice(offsets_[range.tensor] + range.tensor_offset, range.numel);
}

}  // namespace dstune
