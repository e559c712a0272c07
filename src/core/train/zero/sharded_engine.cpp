#include "core/train/zero/sharded_engine.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/train/zero/gradient_passes.hpp"
#include "core/train/zero/initial_parameters.hpp"

namespace dstune {

ShardedEngine::ShardedEngine(const EngineContext& context)
    : EngineBase(context, LossScaler::Kind::zero),
      layout_(groups(), parameters(), size(), config().sub_group_size),
      reduction_(config().overlap_comm ? Stream::reduction : Stream::compute),
      states_(layout_.sub_groups().size()),
      bucket_(device(), config().dtype, config().reduce_bucket_size, 1),
      gathered_(device(), collectives(), layout_, parameters(), config().dtype,
                config().overlap_comm ? Stream::gather : Stream::compute) {
  const DType dtype = config().dtype;
  shards_ = make_buffer(device(), MemoryCategory::parameters, layout_.numel(), dtype);
  device().fill_zero(shards_.tensor(dtype));
  for (std::size_t tensor = 0; tensor < tensor_count(); ++tensor) {
    const std::int64_t count = layout_.filled(tensor, rank());
    if (count == 0) continue;
    fill_initial(device(), model(), parameters(), tensor, rank() * layout_.shard(tensor), seed(),
                 part(shards_, dtype, tensor).slice(0, count));
  }
  master_ = make_buffer(device(), MemoryCategory::optimizer, layout_.numel(), DType::fp32);
  device().cast(shards_.tensor(dtype), master_.tensor(DType::fp32));
  gradients_ = make_buffer(device(), MemoryCategory::gradients, layout_.numel(), dtype);
  device().fill_zero(gradients_.tensor(dtype));
  bucket_.allocate();
}

Tensor ShardedEngine::part(const Buffer& buffer, DType dtype, std::size_t tensor) const {
  return buffer.tensor(dtype).slice(layout_.offset(tensor), layout_.shard(tensor));
}

void ShardedEngine::begin_micro_step(bool) { ++micro_step_; }

// One rank's shard is the whole tensor: nothing is gathered.
void ShardedEngine::fetch(std::size_t module) {
  device().host_event(HostEvent::module_hook);
  if (size() == 1) {
    device().host_sync(HostSync::parameters);
  } else {
    gathered_.fetch(parameters().modules[module].parameters, shards_.tensor(config().dtype));
  }
}

void ShardedEngine::release(std::size_t module) {
  device().host_event(HostEvent::module_hook);
  if (size() > 1) gathered_.release(parameters().modules[module].parameters);
}

Tensor ShardedEngine::parameter(std::size_t tensor) const {
  return size() == 1 ? part(shards_, config().dtype, tensor) : gathered_.full(tensor);
}

void ShardedEngine::gradient_ready(std::size_t tensor, Buffer gradient) {
  device().host_event(HostEvent::gradient_hook);
  if (bucket_.must_flush_before(numel(tensor))) flush();
  bucket_.add(tensor, std::move(gradient));
}

void ShardedEngine::end_backward() {
  flush();
  device().host_sync(HostSync::reduction);
}

void ShardedEngine::flush() {
  if (bucket_.empty()) return;
  const PhaseScope phase(device().memory(), StepPhase::reduction);
  if (!config().reduce_scatter && !bucket_.is_extra_large()) {
    average_whole_bucket();
  } else {
    scatter_bucket();
  }
  bucket_.clear();
}

void ShardedEngine::scatter_bucket() {
  auto& entries = bucket_.entries();
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
  std::int64_t chunk = 0;
  for (const auto& entry : entries) chunk += layout_.shard(entry.tensor);
  const Tensor only = entries.front().gradient;
  const bool as_it_is = entries.size() == 1 && only.numel % size() == 0;
  const Buffer staging = as_it_is ? Buffer{} : temporary(chunk * size(), config().dtype);
  const Tensor flat = as_it_is ? only : interleave(staging.tensor(config().dtype));
  const Tensor own = flat.slice(rank() * chunk, chunk);
  passes().scale(Pass::average, flat, 1.0 / size());
  device().wait(reduction_, Stream::compute);
  collectives().reduce_scatter(flat, own, ReduceOp::sum, Purpose::gradients, reduction_);
  device().wait(Stream::compute, reduction_);
  std::int64_t offset = 0;
  for (const auto& entry : entries) {
    const std::int64_t shard = layout_.shard(entry.tensor);
    take(entry.tensor, own.slice(offset, shard));
    offset += shard;
  }
}

// Rank-major order: every rank's chunk holds its shard of each tensor, padding zeroed.
Tensor ShardedEngine::interleave(Tensor flat) const {
  std::int64_t offset = 0;
  for (int owner = 0; owner < size(); ++owner) {
    for (const auto& entry : bucket_.entries()) {
      const std::int64_t shard = layout_.shard(entry.tensor);
      const std::int64_t count = layout_.filled(entry.tensor, owner);
      if (count > 0) {
        passes().copy(Pass::flatten, entry.gradient.slice(owner * shard, count),
                      flat.slice(offset, count));
      }
      if (count < shard) {
        passes().fill_zero(Pass::flatten, flat.slice(offset + count, shard - count));
      }
      offset += shard;
    }
  }
  return flat;
}

void ShardedEngine::average_whole_bucket() {
  const Tensor whole = bucket_.contents();
  passes().scale(Pass::average, whole, 1.0 / size());
  device().wait(reduction_, Stream::compute);
  collectives().all_reduce(whole, ReduceOp::sum, Purpose::gradients, reduction_);
  device().wait(Stream::compute, reduction_);
  for (const auto& entry : bucket_.entries()) {
    const std::int64_t count = layout_.filled(entry.tensor, rank());
    if (count == 0) continue;
    take(entry.tensor, entry.gradient.slice(rank() * layout_.shard(entry.tensor), count));
  }
}

void ShardedEngine::take(std::size_t tensor, Tensor averaged) {
  const Tensor kept = part(gradients_, config().dtype, tensor).slice(0, averaged.numel);
  if (micro_step_ == 0) {
    passes().copy(Pass::partition_copy, averaged, kept);
  } else {
    passes().add(Pass::accumulate, kept, averaged);
  }
}

StepResult ShardedEngine::step() {
  micro_step_ = -1;
  if (config().dtype == DType::fp16 && overflowed()) return finish(true, 0);
  double squares = 0;
  for (const SubGroup& group : layout_.sub_groups()) squares += norm_of(group);
  const double norm = std::sqrt(squares) / loss_scale();
  const double factor = unscale_factor(norm, config().gradient_clipping, loss_scale());
  for (std::size_t i = 0; i < layout_.sub_groups().size(); ++i) update(i, factor);
  device().host_sync(HostSync::parameters);
  return finish(false, norm);
}

bool ShardedEngine::overflowed() {
  const bool found = has_overflow_in_shard(device(), gradients_.tensor(config().dtype));
  return collectives().all_reduce_scalar(found ? 1 : 0, ReduceOp::max, Purpose::overflow) > 0;
}

double ShardedEngine::norm_of(const SubGroup& group) {
  double squares = 0;
  for (const std::size_t tensor : group.tensors) {
    device().host_event(HostEvent::optimizer_tensor);
    squares += sum_of_squares_in_double(device(), part(gradients_, config().dtype, tensor));
  }
  return collectives().all_reduce_scalar(squares, ReduceOp::sum, Purpose::norm);
}

void ShardedEngine::update(std::size_t index, double factor) {
  const SubGroup& group = layout_.sub_groups()[index];
  const DType dtype = config().dtype;
  Buffer gradients = temporary(group.numel, dtype);
  for (const std::size_t tensor : group.tensors) {
    passes().copy(Pass::master_gradient, part(gradients_, dtype, tensor),
                  gradients.tensor(dtype).slice(layout_.offset(tensor) - group.offset,
                                                layout_.shard(tensor)));
  }
  if (dtype != DType::fp32) {
    Buffer single = temporary(group.numel, DType::fp32);
    passes().cast(Pass::master_gradient, gradients.tensor(dtype), single.tensor(DType::fp32));
    gradients = std::move(single);
  }
  const Tensor gradient = gradients.tensor(DType::fp32);
  const Tensor master = master_.tensor(DType::fp32).slice(group.offset, group.numel);
  passes().scale(Pass::unscale, gradient, factor);
  states_[index].update(device(), next_update(group.weight_decay), gradient, master);
  passes().cast(Pass::master_cast, master, shards_.tensor(dtype).slice(group.offset, group.numel));
}

std::vector<float> ShardedEngine::read_parameter(std::size_t tensor) {
  return collect(numel(tensor), [&](Tensor all) {
    const std::int64_t count = layout_.filled(tensor, rank());
    if (count == 0) return;
    device().copy(part(master_, DType::fp32, tensor).slice(0, count),
                  all.slice(rank() * layout_.shard(tensor), count));
  });
}

void ShardedEngine::write_parameter(std::size_t tensor, std::span<const float> values) {
  const std::int64_t count = layout_.filled(tensor, rank());
  if (count == 0) return;
  const auto own = values.subspan(static_cast<std::size_t>(rank() * layout_.shard(tensor)),
                                  static_cast<std::size_t>(count));
  device().write(own, part(shards_, config().dtype, tensor).slice(0, count));
  device().write(own, part(master_, DType::fp32, tensor).slice(0, count));
}

}  // namespace dstune
