#include "core/train/zero/reduction/sharded_gradients.hpp"

#include <algorithm>
#include <utility>

#include "core/device/dry/repeated_work.hpp"
#include "core/device/operations/elementwise.hpp"

namespace dstune {

ShardedGradients::ShardedGradients(const StepConfig& config, Device& device,
                                   Collectives& collectives, const ShardLayout& layout,
                                   Stream stream)
    : config_(config),
      device_(device),
      collectives_(collectives),
      layout_(layout),
      stream_(stream) {
  if (config.contiguous_gradients && capacity() > 0) {
    bucket_ = make_buffer(device, MemoryCategory::buckets, capacity(), config.message_dtype());
  }
}

void ShardedGradients::add(std::size_t tensor, Buffer gradient) {
  Tensor view = gradient.tensor(config_.dtype);
  if (!entries_.empty() && fill_ + view.numel > capacity()) flush();
  device_.wait(stream_, device_.record(Stream::compute));
  const StreamScope scope(device_, stream_);
  gradient.used_on(stream_);
  const std::int64_t begin = fill_;
  fill_ += view.numel;
  if (config_.contiguous_gradients && fill_ <= capacity()) {
    const Tensor place = bucket_.tensor(config_.message_dtype()).slice(begin, view.numel);
    if (place.dtype == view.dtype) {
      device_.run(MemoryPass::bucket_copy, Copy{view, place});
    } else {
      device_.run(MemoryPass::bucket_copy, Cast{view, place});
    }
    view = place;
    gradient.reset();
  }
  entries_.push_back({tensor, view, std::move(gradient), {}});
}

void ShardedGradients::flush() {
  if (entries_.empty()) return;
  const PhaseScope phase(device_.memory(), StepPhase::reduction);
  in_flight_limit_.wait(device_);
  const StreamScope scope(device_, stream_);
  if (config_.contiguous_gradients && !config_.reduce_scatter && fill_ <= capacity()) {
    average_whole();
  } else {
    scatter();
  }
  shards_->end_flush();
  entries_.clear();
  fill_ = 0;
  reduced_ = device_.record(stream_);
  in_flight_limit_.add(reduced_);
}

void ShardedGradients::scatter() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.tensor < b.tensor; });
  cast_to_message();
  std::vector<Tensor> parts;
  std::vector<Buffer> held;
  if (quantized_ != nullptr) {
    average_each(parts, held);
  } else {
    average(entries_, parts, held);
  }
  take_parts(std::move(parts));
}

void ShardedGradients::average(Entries entries, std::vector<Tensor>& parts,
                               std::vector<Buffer>& held) const {
  std::int64_t chunk = 0;
  for (const Entry& entry : entries) chunk += layout_.shard(entry.tensor);
  Tensor flat = entries.front().gradient;
  if (entries.size() > 1 || flat.numel % collectives_.size() != 0) {
    held.push_back(temporary(chunk * collectives_.size(), flat.dtype));
    flat = held.back().tensor(flat.dtype);
    interleave(entries, flat);
  }
  Tensor own = flat.slice(collectives_.rank() * chunk, chunk);
  device_.run(MemoryPass::average, Scale{flat, 1.0 / collectives_.size()});
  device_.await(collectives_.reduce_scatter(flat, own, ReduceOp::sum, Purpose::gradients));
  for (const Entry& entry : entries) {
    parts.push_back(own.slice(0, layout_.filled(entry.tensor, collectives_.rank())));
    const std::int64_t shard = layout_.shard(entry.tensor);
    own = own.slice(shard, own.numel - shard);
  }
}

void ShardedGradients::average_each(std::vector<Tensor>& parts, std::vector<Buffer>& held) const {
  for (const Entry& entry : entries_) {
    if (quantized_->must_scatter(entry.tensor, entry.gradient.dtype)) {
      average({&entry, 1}, parts, held);
    } else {
      held.push_back(quantized_->average(entry.tensor, entry.gradient));
      parts.push_back(held.back().tensor(entry.gradient.dtype));
    }
  }
}

// A gradient that waited without being copied still has the model dtype. DeepSpeed keeps original
// and copy until the end.
void ShardedGradients::cast_to_message() {
  const DType dtype = config_.message_dtype();
  for (Entry& entry : entries_) {
    if (entry.gradient.dtype == dtype) continue;
    entry.cast = temporary(entry.gradient.numel, dtype);
    device_.run(MemoryPass::message_cast, Cast{entry.gradient, entry.cast.tensor(dtype)});
    entry.gradient = entry.cast.tensor(dtype);
  }
}

std::vector<std::int64_t> ShardedGradients::alike_owners(Entries entries) const {
  const std::int64_t size = collectives_.size();
  std::vector<std::int64_t> borders = {0, size};
  for (const Entry& entry : entries) {
    const std::int64_t filled = layout_.numel(entry.tensor) / layout_.shard(entry.tensor);
    borders.push_back(filled);
    borders.push_back(std::min(filled + 1, size));
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

// Writes the shards in rank-major order.
void ShardedGradients::interleave(Entries entries, Tensor flat) const {
  const std::int64_t chunk = flat.numel / collectives_.size();
  const std::vector<std::int64_t> borders = alike_owners(entries);
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    repeat(device_, borders[i + 1] - borders[i], [&](std::int64_t place) {
      const std::int64_t owner = borders[i] + place;
      fill_chunk(entries, owner, flat.slice(owner * chunk, chunk));
    });
  }
}

void ShardedGradients::fill_chunk(Entries entries, std::int64_t owner, Tensor chunk) const {
  std::int64_t offset = 0;
  for (const Entry& entry : entries) {
    const std::int64_t shard = layout_.shard(entry.tensor);
    const std::int64_t count = layout_.filled(entry.tensor, static_cast<int>(owner));
    if (count > 0) {
      device_.run(MemoryPass::flatten,
                  Copy{entry.gradient.slice(owner * shard, count), chunk.slice(offset, count)});
    }
    if (count < shard) {
      device_.run(MemoryPass::flatten, FillZero{chunk.slice(offset + count, shard - count)});
    }
    offset += shard;
  }
}

// All parts are cast back before the first of them is taken, as in DeepSpeed.
void ShardedGradients::take_parts(std::vector<Tensor> parts) {
  std::vector<Buffer> casts;
  for (Tensor& part : parts) {
    if (part.dtype == config_.dtype || part.numel == 0) continue;
    casts.push_back(temporary(part.numel, config_.dtype));
    device_.run(MemoryPass::message_cast, Cast{part, casts.back().tensor(config_.dtype)});
    part = casts.back().tensor(config_.dtype);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) take(entries_[i].tensor, parts[i]);
}

// After the sum DeepSpeed multiplies by gradient_predivide_factor, which is 1, into a new tensor.
void ShardedGradients::average_whole() {
  const Tensor whole = bucket_.tensor(config_.message_dtype()).slice(0, fill_);
  device_.run(MemoryPass::average, Scale{whole, 1.0 / collectives_.size()});
  device_.await(collectives_.all_reduce(whole, ReduceOp::sum, Purpose::gradients));
  Buffer averaged;
  Tensor result = whole;
  if (!config_.prescale_gradients && collectives_.size() > 1) {
    averaged = temporary(fill_, whole.dtype);
    result = averaged.tensor(whole.dtype);
    device_.run(MemoryPass::average, Copy{whole, result});
  }
  if (whole.dtype != config_.dtype) {
    Buffer cast = temporary(fill_, config_.dtype);
    device_.run(MemoryPass::message_cast, Cast{result, cast.tensor(config_.dtype)});
    averaged = std::move(cast);
    result = averaged.tensor(config_.dtype);
  }
  take_slices(result);
}

void ShardedGradients::take_slices(Tensor whole) {
  std::int64_t begin = 0;
  for (const Entry& entry : entries_) {
    const std::int64_t first = collectives_.rank() * layout_.shard(entry.tensor);
    const std::int64_t count = layout_.filled(entry.tensor, collectives_.rank());
    take(entry.tensor, whole.slice(begin + first, count));
    begin += entry.gradient.numel;
  }
}

void ShardedGradients::take(std::size_t tensor, Tensor averaged) {
  if (averaged.numel > 0) shards_->take(tensor, averaged);
}

}  // namespace dstune
