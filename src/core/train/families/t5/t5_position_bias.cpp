#include "core/train/families/t5/t5_position_bias.hpp"

#include <utility>

#include "core/device/operations/attention_mask.hpp"
#include "core/device/operations/fill.hpp"
#include "core/model/t5/t5.hpp"
#include "core/train/layers/eager_attention.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

constexpr std::int64_t kPack = 8;  // elements: pad_bias of PyTorch's attention.cpp

AttentionShape mask_shape(const Workspace& work, std::int64_t heads, bool causal) {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = heads,
          .kv_heads = heads,
          .head_size = 1,
          .causal = causal};
}

Buffer new_scores(const Workspace& work, std::int64_t count) {
  return make_buffer(*work.device, MemoryCategory::activations, count, work.dtype);
}

}  // namespace

PositionBias::PositionBias(const ModelSpec& spec, const ModelNames& names,
                           const std::string& attention, bool causal)
    : heads_(spec.num_heads),
      buckets_(settings_of(spec).buckets),
      max_distance_(settings_of(spec).max_distance),
      causal_(causal) {
  if (attention.empty()) return;
  table_.emplace(names, attention + ".relative_attention_bias", buckets_, heads_);
}

void PositionBias::make(const Workspace& queries, const Workspace& keys, ModuleHooks& hooks) {
  const std::int64_t pairs = queries.sequence_length * keys.sequence_length;
  if (!table_) {
    bias_ = new_scores(queries, pairs * heads_);
    queries.device->run(FillZero{bias_.tensor(queries.dtype)});
    return;
  }
  numbers_ = make_buffer(*queries.device, MemoryCategory::activations, pairs, DType::int64);
  queries.device->run(PositionBuckets{.queries = queries.sequence_length,
                                      .keys = keys.sequence_length,
                                      .bidirectional = !causal_,
                                      .buckets = buckets_,
                                      .max_distance = max_distance_,
                                      .out = numbers_.tensor(DType::int64)});
  bias_ = table_->forward(queries, hooks, numbers_.tensor(DType::int64));
  mask_ = layers::attention_mask(queries, mask_shape(queries, heads_, causal_));
}

// Zeros that sdpa reads are saved by every layer.
void PositionBias::forget(const Workspace& queries) {
  mask_.reset();
  if (table_ || queries.attention == AttentionKind::eager) bias_.reset();
}

Buffer PositionBias::added_to(const Workspace& queries, const ScoreShape& shape,
                              Buffer scores) const {
  const auto next = [&](auto operation) {
    Buffer out = new_scores(queries, shape.count());
    operation.scores = scores.tensor(queries.dtype);
    operation.out = out.tensor(queries.dtype);
    queries.device->run(operation);
    scores = std::move(out);
  };
  next(AddScoreBias{.shape = shape,
                    .scores = {},
                    .bias = bias_.tensor(queries.dtype),
                    .stacked = !table_,
                    .out = {}});
  if (!mask_) return scores;
  next(AddMask{.shape = mask_shape(queries, heads_, causal_),
               .scores = {},
               .mask = mask_.tensor(queries.dtype),
               .out = {}});
  return scores;
}

Buffer PositionBias::stacked(const Workspace& queries, const ScoreShape& shape) const {
  const std::int64_t padded = (shape.keys + kPack - 1) / kPack * kPack;
  if (!table_ && padded == shape.keys) return {};
  Buffer out = new_scores(queries, shape.heads * shape.queries * padded);
  const Tensor whole = out.tensor(queries.dtype).slice(0, shape.of_one());
  if (!table_) {
    queries.device->run(FillZero{whole});
    return out;
  }
  queries.device->run(StackBias{
      .shape = shape, .bias = bias_.tensor(queries.dtype), .causal = causal_, .out = whole});
  return out;
}

Tensor PositionBias::tensor_of(const Workspace& queries, const ScoreShape& shape,
                               const Buffer& stacked) const {
  return (stacked ? stacked : bias_).tensor(queries.dtype).slice(0, shape.of_one());
}

void PositionBias::add_gradient(const Workspace& queries, const ScoreShape& shape,
                                Tensor d_scores) {
  if (!is_learnt()) return;
  const bool adds = static_cast<bool>(d_bias_);
  if (!adds) d_bias_ = new_scores(queries, shape.of_one());
  queries.device->run(ScoreBiasGradient{
      .shape = shape, .d_scores = d_scores, .adds = adds, .d_bias = d_bias_.tensor(queries.dtype)});
}

void PositionBias::finish(const Workspace& queries, ModuleHooks& hooks) {
  bias_.reset();
  mask_.reset();
  if (!table_) return;
  if (table_->is_trainable) hooks.fetch(table_->module);
  Buffer d_table = table_->gradient(queries, d_bias_, numbers_.tensor(DType::int64));
  d_bias_.reset();
  numbers_.reset();
  hooks.gradient_ready(table_->weight, std::move(d_table));
}

}  // namespace dstune::t5
