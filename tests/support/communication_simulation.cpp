#include "tests/support/communication_simulation.hpp"

#include <algorithm>
#include <numeric>

#include "core/train/families/families.hpp"

namespace dstune::test {

namespace {

// The places of a layer's tensors in the order of backward: mlp.c_proj, mlp.c_fc, ln_2,
// attn.c_proj, attn.c_attn, ln_1; biases of linear layers before their weights.
constexpr std::size_t kLayerBackward[] = {11, 10, 9, 8, 6, 7, 5, 4, 3, 2, 0, 1};

}  // namespace

CommunicationSimulation::CommunicationSimulation(const TinyExperiment& tiny, std::int64_t rank)
    : config_(make_step_config(tiny.make())),
      layers_(static_cast<std::size_t>(tiny.model.num_layers)),
      ranks_(tiny.ranks),
      replicas_(1) {
  if (config_.stage == 3 && config_.mics_shard_size > 0) {
    replicas_ = ranks_ / config_.mics_shard_size;
    ranks_ = config_.mics_shard_size;
  }
  place_ = rank % ranks_;
  const ModelParameters parameters = make_model_parameters(tiny.model);
  modules_ = parameters.modules;
  for (const auto& tensor : parameters.tensors) {
    numels_.push_back(tensor.numel());
    decays_.push_back(tensor.weight_decay);
    shapes_.push_back(tensor.shape);
  }
}

CollectiveCounts CommunicationSimulation::counts() {
  if (config_.stage == 0) count_stage_0();
  const bool is_bf16_optimizer =
      config_.stage == 1 && config_.dtype == DType::bf16 && config_.grad_accum_dtype == DType::fp32;
  if (is_bf16_optimizer) count_bf16_optimizer();
  if (!is_bf16_optimizer && (config_.stage == 1 || config_.stage == 2)) count_stages_1_and_2();
  if (config_.stage == 3) count_stage_3();
  return counts_;
}

double CommunicationSimulation::sent_bytes() const { return wire_bytes_; }

void CommunicationSimulation::note(CollectiveKind kind, std::int64_t elements, Bytes each,
                                   std::int64_t ranks) {
  add(counts_, kind, elements, each);
  wire_bytes_ += wire_bytes(kind, static_cast<Bytes>(elements) * each,
                            static_cast<int>(ranks == 0 ? ranks_ : ranks));
}

void CommunicationSimulation::call(CollectiveKind kind, std::int64_t elements, std::int64_t ranks) {
  note(kind, elements, size_of(config_.dtype), ranks);
}

void CommunicationSimulation::send(CollectiveKind kind, std::int64_t elements) {
  note(kind, elements, size_of(config_.communication_dtype.value_or(config_.dtype)));
}

CommunicationSimulation::Order CommunicationSimulation::backward_order() const {
  Order order = {2 + 12 * layers_, 3 + 12 * layers_};
  for (std::size_t layer = layers_; layer-- > 0;) {
    for (const std::size_t place : kLayerBackward) order.push_back(2 + 12 * layer + place);
  }
  order.insert(order.end(), {1, 0});
  return order;
}

std::vector<CommunicationSimulation::Order> CommunicationSimulation::groups() const {
  std::vector<Order> groups(config_.optimizer.client ? 2 : 1);
  for (std::size_t i = 0; i < numels_.size(); ++i) {
    groups[config_.optimizer.client && !decays_[i] ? 1 : 0].push_back(i);
  }
  return groups;
}

std::vector<CommunicationSimulation::Order> CommunicationSimulation::buckets(
    const Order& order) const {
  std::vector<Order> flushed;
  Order bucket;
  std::int64_t fill = 0;
  for (const std::size_t tensor : order) {
    if (!bucket.empty() && fill + numels_[tensor] > config_.reduce_bucket_size) {
      flushed.push_back(bucket);
      bucket.clear();
      fill = 0;
    }
    bucket.push_back(tensor);
    fill += numels_[tensor];
  }
  flushed.push_back(bucket);
  return flushed;
}

void CommunicationSimulation::count_stage_0() {
  send(CollectiveKind::all_reduce, std::accumulate(numels_.begin(), numels_.end(), 0L));
  if (config_.dtype == DType::fp32 && config_.gradient_clipping > 0) {
    note(CollectiveKind::all_reduce, 1, 4);
  }
}

// The groups together are far below 5e8 elements: one call.
void CommunicationSimulation::count_bf16_optimizer() {
  lay_out();
  send(CollectiveKind::all_reduce, std::accumulate(lengths_.begin(), lengths_.end(), 0L));
  for (const std::int64_t length : lengths_) {
    if (ranks_ > 1) call(CollectiveKind::all_gather, length);
  }
}

void CommunicationSimulation::count_stages_1_and_2() {
  lay_out();
  const bool late = config_.stage == 1 && !config_.overlap_comm;
  Order order = late ? Order{} : backward_order();
  if (late) {
    for (const Order& group : groups()) order.insert(order.end(), group.begin(), group.end());
  }
  const std::int64_t windows = config_.stage == 1 ? 1 : config_.accumulation_steps;
  for (std::int64_t window = 0; window < windows; ++window) {
    for (const Order& bucket : buckets(order)) average(bucket);
  }
  const bool checks =
      config_.dtype == DType::fp16 || (config_.dtype == DType::bf16 && config_.check_grad_overflow);
  if (checks) note(CollectiveKind::all_reduce, 1, 1);
  for (const std::int64_t length : lengths_) {
    note(CollectiveKind::all_reduce, 1, 4);
    if (ranks_ > 1) call(CollectiveKind::all_gather, length);
  }
}

CommunicationSimulation::Order CommunicationSimulation::dealt(const Order& group) const {
  const auto hands = static_cast<std::size_t>(config_.round_robin_gradients ? ranks_ : 1);
  Order order;
  for (std::size_t hand = 0; hand < hands; ++hand) {
    for (std::size_t i = hand; i < group.size(); i += hands) order.push_back(group[i]);
  }
  return order;
}

void CommunicationSimulation::lay_out() {
  owners_.resize(numels_.size());
  for (const Order& group : groups()) {
    std::int64_t length = 0;
    for (const std::size_t tensor : group) length += numels_[tensor];
    while (length % (2 * ranks_) != 0) ++length;
    lengths_.push_back(length);
    std::int64_t element = 0;
    for (const std::size_t tensor : dealt(group)) {
      for (std::int64_t i = 0; i < numels_[tensor]; ++i, ++element) {
        owners_[tensor].push_back(element / (length / ranks_));
      }
    }
  }
}

void CommunicationSimulation::average(const Order& bucket) {
  std::vector<std::int64_t> owners;
  for (const std::size_t tensor : bucket) {
    owners.insert(owners.end(), owners_[tensor].begin(), owners_[tensor].end());
  }
  const bool cuts = config_.contiguous_gradients && config_.reduce_scatter;
  if (cuts && !config_.use_multi_rank_bucket_allreduce) {
    for (std::int64_t owner = 0; owner < ranks_; ++owner) {
      const auto part = std::count(owners.begin(), owners.end(), owner);
      if (part > 0) send(CollectiveKind::reduce, part);
    }
    return;
  }
  std::int64_t fill = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    ++fill;
    const bool is_last = i + 1 == owners.size();
    const bool ends_slice = is_last || owners[i + 1] != owners[i];
    const bool is_full = cuts && ends_slice && fill > config_.reduce_bucket_size;
    if (!is_full && !is_last) continue;
    send(CollectiveKind::all_reduce, fill);
    fill = 0;
  }
}

}  // namespace dstune::test
