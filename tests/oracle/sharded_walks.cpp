#include "tests/oracle/sharded_walks.hpp"

#include "core/train/zero/layout/quantization_groups.hpp"

namespace dstune::oracle::sharded {

void GatherWalk::gather(const Tensors& tensors) {
  if (walked_.ranks == 1) return;
  Tensors with;
  Tensors without;
  for (const std::size_t tensor : tensors) {
    (secondary_.count(tensor) > 0 ? with : without).push_back(tensor);
  }
  if (walked_.config.quantized_weights) {
    gather_quantized(with, walked_.secondary);
    gather_quantized(without, walked_.ranks);
    return;
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
  const auto message = messages_.insert(messages_.end(), {tensors, 0, tensors.size(), false, 0});
  for (const std::size_t tensor : tensors) {
    message->bytes += times(walked_.padded(tensor), walked_.e());
    (pack ? packed_ : shared_)[tensor] = message;
  }
  (pack ? walked_.temporaries : walked_.full).add(message->bytes);
}

// Launch: the shards together, their fp16 copy, own values and steps; then everybody's.
void GatherWalk::gather_quantized(const Tensors& tensors, std::int64_t ranks) {
  if (tensors.empty()) return;
  std::int64_t own = 0;
  for (const std::size_t tensor : tensors) own += walked_.padded(tensor) / ranks;
  const Bytes packed = times(own, 1) + times(weight_groups(own).value_or(0), 4);
  const Bytes sent = times(ranks, packed);
  const auto message =
      messages_.insert(messages_.end(), {tensors, sent, tensors.size(), false, ranks * own});
  for (const std::size_t tensor : tensors) packed_[tensor] = message;
  const Bytes together = tensors.size() > 1 ? times(own, walked_.e()) : 0;
  walked_.temporaries.with(together + half(own) + packed + sent);
  walked_.temporaries.add(sent);
}

/// Of the fp16 that the kernels want.
Bytes GatherWalk::half(std::int64_t elements) const {
  return walked_.config.dtype == DType::fp16 ? 0 : times(elements, 2);
}

void GatherWalk::dequantize(Message& message) {
  const Bytes bytes = times(message.quantized, walked_.e());
  const bool is_packed = message.tensors.size() > 1;
  walked_.temporaries.with((is_packed ? bytes : 0) + half(message.quantized));
  if (is_packed) {
    walked_.temporaries.add(bytes);
    message.bytes += bytes;
  } else {
    gather_alone(message.tensors.front());
  }
}

void GatherWalk::gather_persistent(const Tensors& tensors) {
  if (walked_.ranks == 1) return;
  for (const std::size_t tensor : tensors) gather_alone(tensor);
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
  if (message.quantized > 0) dequantize(message);
  if (message.tensors.size() == 1 && message.quantized > 0) return;
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
  Bytes bytes = casts() ? times(waiting_, message()) : 0;
  if (walked_.nodes.nodes > 1) {
    walked_.temporaries.add(bytes);
    const Bytes held = average_each();
    walked_.temporaries.remove(bytes);
    bytes += held;
  } else if (!alone) {
    bytes += times(staged, message());
  }
  if (casts()) bytes += times(parts, walked_.e());
  walked_.temporaries.with(bytes + largest_sum_cast());
}

// QuantizedReduce holds both hops, what comes out of them, and the sum, which stays.
Bytes BucketWalk::average_each() {
  std::sort(tensors_.begin(), tensors_.end());
  const auto ranks = static_cast<int>(walked_.ranks);
  const int devices = walked_.nodes.devices;
  Bytes held = 0;
  for (const std::size_t tensor : tensors_) {
    const auto& shape = walked_.parameters.tensors[tensor].shape;
    const std::int64_t numel = walked_.layout.numel(tensor);
    if (gradient_path(shape, ranks) == GradientPath::reduce_scatter) {
      if (numel % ranks != 0) held += times(walked_.padded(tensor), message());
      walked_.temporaries.with(held);
      continue;
    }
    const Bytes hop = times(numel, 1) / 2 + times(gradient_groups(shape, ranks), 4);
    const Bytes sum = times(numel / ranks, message());
    walked_.temporaries.with(held + 2 * hop + 2 * hop / devices +
                             times(numel / devices, message()) + sum);
    held += sum;
  }
  return held;
}

}  // namespace dstune::oracle::sharded
