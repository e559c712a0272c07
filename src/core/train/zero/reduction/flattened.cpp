#include "core/train/zero/reduction/flattened.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {
namespace {

bool follows(Tensor next, Tensor part) { return part.slice(part.numel, 0).data == next.data; }

}  // namespace

Flattened::Flattened(Device& device, std::vector<Tensor> parts)
    : device_(device), parts_(std::move(parts)), tensor_(parts_.front()) {
  std::int64_t numel = 0;
  for (const Tensor& part : parts_) {
    offsets_.push_back(numel);
    numel += part.numel;
  }
  if (parts_.size() == 1) return;
  const DType dtype = parts_.front().dtype;
  copy_ = make_buffer(device, MemoryCategory::temporaries, numel, dtype);
  tensor_ = copy_.tensor(dtype);
  // Parts that are neighbours in memory are copied together: one kernel makes the whole list.
  for (std::size_t i = 0; i < parts_.size();) {
    Tensor stretch = parts_[i];
    const std::int64_t offset = offsets_[i];
    for (++i; i < parts_.size() && follows(parts_[i], stretch); ++i) {
      stretch.numel += parts_[i].numel;
    }
    device.run(MemoryPass::flatten, Copy{stretch, tensor_.slice(offset, stretch.numel)});
  }
}

void Flattened::copy_back(std::size_t i) const {
  if (!copy_) return;
  device_.run(MemoryPass::flatten, Copy{tensor_.slice(offsets_[i], parts_[i].numel), parts_[i]});
}

void Flattened::copy_back() const {
  for (std::size_t i = 0; i < parts_.size(); ++i) copy_back(i);
}

}  // namespace dstune
