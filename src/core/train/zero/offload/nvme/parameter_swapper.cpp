#include "core/train/zero/offload/nvme/parameter_swapper.hpp"

#include <cstdint>

#include "core/base/text.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/zero/offload/nvme/swap_buffers.hpp"

namespace dstune {
namespace {

// Of all buffers; a file may ask for more than there are numbers for.
std::int64_t elements_of(std::int64_t buffers, std::int64_t each) {
  constexpr std::int64_t kMost = std::int64_t{1} << 58U;
  return buffers > 0 && each > kMost / buffers ? kMost : buffers * each;
}

}  // namespace

ParameterSwapper::ParameterSwapper(Device& device, const StepConfig& config,
                                   const ShardLayout& layout)
    : device_(device),
      layout_(layout),
      dtype_(config.dtype),
      rules_(config.aio, size_of(config.dtype)),
      threads_(static_cast<Bytes>(config.aio.intra_op_parallelism)),
      buffer_numel_(config.parameter_buffer_size),
      drive_(device, config.parameter_nvme_path),
      pool_(make_buffer(device, MemoryCategory::parameters,
                        elements_of(config.parameter_buffer_count, rules_.padded(buffer_numel_)),
                        dtype_, Tier::locked)),
      count_(static_cast<std::size_t>(config.parameter_buffer_count)),
      unused_(count_),
      places_(layout.tensor_count()),
      reads_(drive_, config.aio),
      writes_(drive_, config.aio) {}

Tensor ParameterSwapper::padded(std::size_t tensor) const {
  const auto begin =
      static_cast<std::int64_t>(places_[tensor].buffer) * rules_.padded(buffer_numel_);
  return pool_.tensor(dtype_).slice(begin, rules_.padded(layout_.shard(tensor)));
}

PlacedTensor ParameterSwapper::shard(std::size_t tensor) const {
  return {padded(tensor).slice(0, layout_.shard(tensor)), Tier::locked};
}

// The last one that was given back, or else the one with the highest number.
void ParameterSwapper::take_buffer(std::size_t tensor) {
  if (given_back_.empty()) {
    places_[tensor].buffer = --unused_;
    return;
  }
  places_[tensor].buffer = given_back_.back();
  given_back_.pop_back();
}

void ParameterSwapper::give_back(std::size_t tensor) {
  given_back_.push_back(places_[tensor].buffer);
  places_[tensor].state = State::on_drive;
}

void ParameterSwapper::begin(std::size_t tensor,
                             const std::function<void(PlacedTensor shard)>& fill) {
  const std::int64_t numel = layout_.shard(tensor);
  if (numel > buffer_numel_) {
    throw StepRefused(concat("zero_optimization.offload_param.buffer_size ", buffer_numel_,
                             " where a rank has ", numel,
                             " elements of a tensor: DeepSpeed stops with an error"));
  }
  if (free_buffers() == 0) refuse("too few to begin with");
  Place& place = places_[tensor];
  place.file = drive_.take(MemoryCategory::parameters,
                           static_cast<Bytes>(rules_.padded(numel)) * size_of(dtype_));
  take_buffer(tensor);
  device_.run_on_host(FillZero{padded(tensor)});
  fill(shard(tensor));
  write(tensor);
  give_back(tensor);
}

void ParameterSwapper::write(std::size_t tensor) {
  writes_.write(padded(tensor), places_[tensor].file, TransferPurpose::parameter);
  writes_.wait();
}

// DeepSpeed reads what has no padding straight to where it is to be.
void ParameterSwapper::move_to(std::size_t tensor, const PlacedTensor& place) {
  const std::int64_t numel = layout_.shard(tensor);
  if (rules_.padded(numel) == numel) {
    reads_.read(places_[tensor].file, place.tensor, TransferPurpose::parameter);
    reads_.wait();
  } else {
    bring({tensor});
    device_.run_on_host(Copy{shard(tensor).tensor, place.tensor});
    let_go({tensor});
  }
  places_[tensor].state = State::elsewhere;
}

void ParameterSwapper::make_write_back(const SubGroup& largest) {
  std::int64_t numel = 0;
  for (const std::size_t tensor : largest.tensors) numel += rules_.padded(layout_.numel(tensor));
  write_back_ = make_buffer(device_, MemoryCategory::parameters, numel, dtype_, Tier::locked);
  device_.run_on_host(FillZero{write_back_.tensor(dtype_)});
}

void ParameterSwapper::start_to_read(const Tensors& tensors) {
  if (tensors.size() > free_buffers()) {
    refuse(concat("too few for the tensors that are gathered together or kept (", tensors.size(),
                  " more where ", free_buffers(),
                  " are free; a smaller stage3_max_reuse_distance keeps fewer)"));
  }
  for (const std::size_t tensor : tensors) {
    if (!is_away(tensor)) {
      refuse(
          "so many that it reads a tensor ahead twice (not with a stage3_prefetch_bucket_size "
          "of 0)");
    }
    take_buffer(tensor);
    places_[tensor].state = State::on_its_way;
    on_their_way_.push_back(tensor);
    reads_.read(places_[tensor].file, padded(tensor), TransferPurpose::parameter);
  }
}

void ParameterSwapper::refuse(std::string_view what) const {
  throw StepRefused(concat("zero_optimization.offload_param.buffer_count ", count_,
                           ": DeepSpeed stops with an error, as these are ", what));
}

void ParameterSwapper::await_reads() {
  if (on_their_way_.empty()) return;
  reads_.wait();
  for (const std::size_t tensor : on_their_way_) places_[tensor].state = State::in_buffer;
  on_their_way_.clear();
}

// What is read ahead is awaited with what is not.
void ParameterSwapper::bring(const Tensors& tensors) {
  Tensors away;
  bool is_any_on_its_way = false;
  for (const std::size_t tensor : tensors) {
    if (is_away(tensor)) away.push_back(tensor);
    is_any_on_its_way |= places_[tensor].state == State::on_its_way;
  }
  start_to_read(away);
  if (is_any_on_its_way || !away.empty()) await_reads();
}

// DeepSpeed gives a buffer back while it is still read ahead of a tensor that was there all the
// time; here the host waits then, so that nobody else gets what is being written.
void ParameterSwapper::let_go(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    if (places_[tensor].state == State::on_its_way) await_reads();
    if (is_in_buffer(tensor)) give_back(tensor);
  }
}

void ParameterSwapper::write_back(const std::vector<NewValues>& shards) {
  const Tensor buffer = write_back_.tensor(dtype_);
  std::vector<std::int64_t> numels;
  numels.reserve(shards.size());
  for (const NewValues& shard : shards) numels.push_back(rules_.padded(shard.values.tensor.numel));
  const auto places = pack_into_buffers(numels, 1, buffer.numel);
  if (places.size() < shards.size()) {
    throw StepRefused(
        "zero_optimization.offload_param.device nvme with a sub-group whose padding has no room "
        "where DeepSpeed writes it: it stops with an error");
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const PlacedTensor& values = shards[i].values;
    copy_weights(device_, values,
                 {buffer.slice(places[i].begin, values.tensor.numel), Tier::locked});
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    writes_.write(buffer.slice(places[i].begin, numels[i]), places_[shards[i].tensor].file,
                  TransferPurpose::parameter);
  }
  writes_.wait();
}

void ParameterSwapper::with_shard(std::size_t tensor,
                                  const std::function<void(PlacedTensor)>& use) {
  const bool is_new = !is_in_buffer(tensor);
  bring({tensor});
  use(shard(tensor));
  write(tensor);
  if (is_new) let_go({tensor});
}

std::vector<Tensor> ParameterSwapper::room_for(const std::vector<std::int64_t>& numels) const {
  const std::int64_t size = rules_.padded(buffer_numel_);
  const auto places = pack_into_buffers(numels, free_buffers(), size);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Number place = places[i].buffer;
    const Number number = place < unused_ ? place : given_back_[place - unused_];
    const auto begin = static_cast<std::int64_t>(number) * size;
    tensors.push_back(pool_.tensor(dtype_).slice(begin + places[i].begin, numels[i]));
  }
  return tensors;
}

void ParameterSwapper::read_to(const std::vector<std::pair<std::size_t, Tensor>>& places) {
  if (places.empty()) return;
  for (const auto& [tensor, place] : places) {
    if (place.size() % threads_ != 0) {
      throw StepRefused(concat("zero_optimization.offload_optimizer.fast_init: a shard of ",
                               place.size(), " bytes is not divisible by ", threads_,
                               " threads; DeepSpeed stops with an error"));
    }
    reads_.read(places_[tensor].file, place, TransferPurpose::parameter);
  }
  reads_.wait();
}

}  // namespace dstune
