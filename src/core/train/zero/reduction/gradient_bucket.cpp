#include "core/train/zero/reduction/gradient_bucket.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {

GradientBucket::GradientBucket(Device& device, DType dtype, std::int64_t capacity, int copies)
    : device_(device), dtype_(dtype), capacity_(capacity), copies_(copies) {}

void GradientBucket::allocate() {
  if (storage_[0] || capacity_ == 0) return;
  for (int i = 0; i < copies_; ++i) {
    storage_[static_cast<std::size_t>(i)] =
        make_buffer(device_, MemoryCategory::buckets, capacity_, dtype_);
  }
}

void GradientBucket::free_memory() {
  for (Buffer& buffer : storage_) buffer.reset();
  current_ = 0;
}

bool GradientBucket::must_flush_before(std::int64_t numel) const {
  return !entries_.empty() && fill_ + numel > capacity_;
}

void GradientBucket::add(std::size_t tensor, Buffer gradient) {
  Tensor view = gradient.tensor(dtype_);
  const std::int64_t begin = fill_;
  fill_ += view.numel;
  if (copies_ > 0 && !is_extra_large()) {
    const Tensor place = storage_[current_].tensor(dtype_).slice(begin, view.numel);
    device_.run(MemoryPass::bucket_copy, Copy{view, place});
    view = place;
    gradient.reset();
  }
  entries_.push_back({tensor, view, std::move(gradient)});
}

Tensor GradientBucket::contents() const {
  if (is_extra_large()) return entries_.front().gradient;
  return storage_[current_].tensor(dtype_).slice(0, fill_);
}

void GradientBucket::clear() {
  entries_.clear();
  fill_ = 0;
  if (copies_ == 2) current_ = 1 - current_;
}

}  // namespace dstune
