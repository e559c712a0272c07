#include "core/train/zero/offload/nvme/gradient_swapper.hpp"

#include <utility>

namespace dstune {

void GradientSwapper::add(Tensor gradient, const DriveExtent& file) {
  if (all_.empty()) free_ = all_ = pool_.take_all();
  make_room(gradient.numel);
  const Tensor place = pool_.tensor(*current_, pool_.numel()).slice(fill_, gradient.numel);
  device_.transfer(
      {gradient, place, Transfer::device_to_host, TransferPurpose::gradient, Tier::locked, true});
  entries_.push_back({place, file});
  fill_ += gradient.numel;
}

void GradientSwapper::make_room(std::int64_t numel) {
  if (current_ && fill_ + numel > pool_.numel()) {
    write_current();
    if (free_.empty()) wait();
  }
  if (current_) return;
  current_ = free_.back();
  free_.pop_back();
}

void GradientSwapper::write_current() {
  for (const Entry& entry : entries_) {
    writes_.write(entry.tensor, entry.file, TransferPurpose::gradient);
  }
  entries_.clear();
  fill_ = 0;
  under_way_.push_back(*std::exchange(current_, std::nullopt));
}

void GradientSwapper::wait() {
  writes_.wait();
  free_.insert(free_.end(), under_way_.begin(), under_way_.end());
  under_way_.clear();
}

void GradientSwapper::finish() {
  if (all_.empty()) return;
  if (current_) write_current();
  wait();
  pool_.give_back(all_);
  all_.clear();
  free_.clear();
}

}  // namespace dstune
