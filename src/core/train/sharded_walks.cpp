#include "core/train/sharded_walks.hpp"

namespace dstune::sharded {

void GatherWalk::gather(const Tensors& tensors) {
  if (walked_.ranks == 1) return;
  Tensors with;
  Tensors without;
  for (const std::size_t tensor : tensors) {
    (secondary_.count(tensor) > 0 ? with : without).push_back(tensor);
  }
  gather_from(with, true);
  gather_from(without, !walked_.config.use_all_reduce_for_fetch_params);
}

void GatherWalk::gather_from(const Tensors& tensors, bool pack) {
  const bool alone = walked_.config.allgather_sequential || walked_.config.mics_shard_size > 0;
  if (tensors.size() > 1 && !alone) {
    gather_together(tensors, pack);
  } else {
    for (const std::size_t tensor : tensors) gather_alone(tensor);
  }
}

void GatherWalk::gather_alone(std::size_t tensor) {
  stored_[tensor] = times(walked_.padded(tensor), walked_.e());
  walked_.full.add(stored_[tensor]);
}

void GatherWalk::gather_together(const Tensors& tensors, bool pack) {
  const auto message = messages_.insert(messages_.end(), {tensors, 0, tensors.size(), false});
  for (const std::size_t tensor : tensors) {
    message->bytes += times(walked_.padded(tensor), walked_.e());
    (pack ? packed_ : shared_)[tensor] = message;
  }
  (pack ? walked_.temporaries : walked_.full).add(message->bytes);
}

void GatherWalk::gather_persistent(const Tensors& tensors) {
  if (walked_.ranks == 1) return;
  if (tensors.size() == 1) {
    gather_together(tensors, true);
    await(tensors);
  } else {
    for (const std::size_t tensor : tensors) gather_alone(tensor);
  }
}

void GatherWalk::await(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    const auto found = packed_.find(tensor);
    if (found == packed_.end()) continue;
    const Place message = found->second;
    packed_.erase(found);
    if (!message->is_unpacked) unpack(*message);
    if (--message->left > 0) continue;
    walked_.temporaries.remove(message->bytes);
    messages_.erase(message);
  }
}

void GatherWalk::unpack(Message& message) {
  message.is_unpacked = true;
  for (const std::size_t tensor : message.tensors) {
    stored_[tensor] = times(walked_.layout.numel(tensor), walked_.e());
    walked_.full.add(stored_[tensor]);
  }
}

void GatherWalk::release(const Tensors& tensors) {
  if (walked_.ranks == 1) return;
  for (const std::size_t tensor : tensors) {
    keep_secondary(tensor);
    const auto shared = shared_.find(tensor);
    if (shared == shared_.end()) {
      walked_.full.remove(stored_[tensor]);
      stored_.erase(tensor);
      continue;
    }
    const Place message = shared->second;
    shared_.erase(shared);
    if (--message->left > 0) continue;
    walked_.full.remove(message->bytes);
    messages_.erase(message);
  }
}

void GatherWalk::keep_secondary(std::size_t tensor) {
  if (walked_.secondary == 1 || !secondary_.insert(tensor).second) return;
  walked_.full.add(secondary_bytes(tensor));
}

Bytes GatherWalk::secondary_bytes(std::size_t tensor) const {
  return times(walked_.padded(tensor) / walked_.secondary, walked_.e());
}

void GatherWalk::forget_secondary() {
  for (const std::size_t tensor : secondary_) walked_.full.remove(secondary_bytes(tensor));
  secondary_.clear();
}

void BucketWalk::add(std::size_t tensor) {
  const std::int64_t numel = walked_.layout.numel(tensor);
  if (!tensors_.empty() && fill_ + numel > capacity()) flush();
  tensors_.push_back(tensor);
  fill_ += numel;
  if (walked_.config.contiguous_gradients && fill_ <= capacity()) {
    walked_.gradients.remove(times(numel, walked_.e()));
  } else {
    waiting_ += numel;
  }
}

void BucketWalk::flush() {
  if (tensors_.empty()) return;
  const bool in_bucket = walked_.config.contiguous_gradients && fill_ <= capacity();
  if (in_bucket && !walked_.config.reduce_scatter) {
    average_whole();
  } else {
    scatter();
  }
  walked_.gradients.remove(times(waiting_, walked_.e()));
  waiting_ = fill_ = 0;
  tensors_.clear();
}

// A shard is cast to be added to sums of another type.
Bytes BucketWalk::largest_sum_cast() const {
  const DType sums = walked_.config.accumulation_dtype();
  if (is_first_ || sums == walked_.config.dtype) return 0;
  std::int64_t largest = 0;
  for (const std::size_t tensor : tensors_) largest = std::max(largest, own(tensor));
  return times(largest, size_of(sums));
}

void BucketWalk::average_whole() {
  const bool multiplies = !walked_.config.prescale_gradients && walked_.ranks > 1;
  const Bytes product = multiplies ? times(fill_, message()) : 0;
  const Bytes cast = casts() ? times(fill_, walked_.e()) : 0;
  walked_.temporaries.with(product + cast);
  walked_.temporaries.with((casts() ? cast : product) + largest_sum_cast());
}

void BucketWalk::scatter() {
  std::int64_t staged = 0;
  std::int64_t parts = 0;
  for (const std::size_t tensor : tensors_) {
    staged += walked_.padded(tensor);
    parts += own(tensor);
  }
  const bool alone =
      tensors_.size() == 1 && walked_.layout.numel(tensors_.front()) % walked_.ranks == 0;
  Bytes bytes = alone ? 0 : times(staged, message());
  if (casts()) bytes += times(waiting_, message()) + times(parts, walked_.e());
  walked_.temporaries.with(bytes + largest_sum_cast());
}

}  // namespace dstune::sharded
