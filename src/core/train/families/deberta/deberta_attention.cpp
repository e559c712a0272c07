#include "core/train/families/deberta/deberta_attention.hpp"

#include <cmath>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/dropout.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/masked_fill.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/families/bert/bert_seeds.hpp"
#include "core/train/families/deberta/deberta_names.hpp"
#include "core/train/layers/stacked_heads.hpp"

namespace dstune::deberta {

namespace {

using layers::Linear;
using layers::Workspace;

Linear projection(const ModelSpec& spec, const ModelNames& names, const std::string& name) {
  return {names, name, spec.hidden_size, spec.hidden_size, layers::WeightOrder::out_in};
}

Buffer byte_per_pair(const Workspace& work, const AttentionShape& shape) {
  Buffer mask(*work.device, MemoryCategory::activations,
              static_cast<Bytes>(shape.rows() * shape.sequence));
  work.device->run(FillZero{mask.tensor(DType::int8)});
  return mask;
}

}  // namespace

DisentangledAttention::DisentangledAttention(const ModelSpec& spec, const DebertaSettings& settings,
                                             const ModelNames& names, std::int64_t index,
                                             const std::string& block)
    : index_(index),
      size_(spec.hidden_size),
      heads_(spec.num_heads),
      scale_(1 / std::sqrt(static_cast<double>(spec.head_size() * settings.scores()))),
      dropout_probability_(spec.attention_dropout),
      shares_(settings.relative_attention && settings.share_att_key),
      keeps_keys_(settings.relative_attention && settings.p2c),
      query_(projection(spec, names, concat(block, kBlock.query_key_value[0]))),
      key_(projection(spec, names, concat(block, kBlock.query_key_value[1]))),
      value_(projection(spec, names, concat(block, kBlock.query_key_value[2]))),
      dropout_(names.module(concat(block, kSelf, ".dropout"))) {
  if (!settings.relative_attention) return;
  positions_.emplace(spec, settings, names, index, concat(block, kSelf));
}

AttentionShape DisentangledAttention::shape(const Workspace& work) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = heads_,
          .kv_heads = heads_,
          .head_size = size_ / heads_,
          .causal = false,
          .scale = scale_};
}

Buffer DisentangledAttention::project(const Workspace& work, ModuleHooks& hooks,
                                      const Linear& projection, const Buffer& input) const {
  const Buffer rows = projection.forward(work, hooks, input);
  return layers::stacked(work, shape(work), {work.matrix(rows, size_), size_ / heads_}, heads_);
}

void DisentangledAttention::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& input,
                                    const RelativeTable* table, std::uint64_t seed) {
  const AttentionShape own = shape(work);
  q_ = project(work, hooks, query_, input);
  k_ = project(work, hooks, key_, input);
  v_ = project(work, hooks, value_, input);
  scaled_k_ = work.activation(size_);
  work.device->run(ScaleTo{k_.tensor(work.dtype), scale_, scaled_k_.tensor(work.dtype)});
  Buffer scores = layers::new_scores(work, own, work.dtype);
  layers::multiply(work, own.batch * heads_, layers::heads_of(work, own, q_), Transpose::no,
                   layers::heads_of(work, own, scaled_k_), Transpose::yes,
                   layers::scores_of(work, own, scores));
  // Locals of PyTorch's function, which live until it returns.
  Buffer of_positions;
  if (positions_) {
    of_positions = positions_->forward(work, hooks, own, q_, k_, *table, seed);
    Buffer sum = layers::new_scores(work, own, work.dtype);
    work.device->run(AddBroadcast{layers::score_rows(own, scores, work.dtype),
                                  layers::score_rows(own, of_positions, work.dtype),
                                  layers::score_rows(own, sum, work.dtype)});
    scores = std::move(sum);
  }
  const Buffer visible = byte_per_pair(work, own);
  attend(work, hooks, std::move(scores), seed);
  if (!keeps_keys_) k_.reset();
}

void DisentangledAttention::attend(const Workspace& work, ModuleHooks& hooks, Buffer scores,
                                   std::uint64_t seed) {
  const AttentionShape own = shape(work);
  hidden_ = byte_per_pair(work, own);
  Buffer masked = layers::new_scores(work, own, work.dtype);
  work.device->run(FillMasked{.shape = own,
                              .in = scores.tensor(work.dtype),
                              .mask = hidden_.tensor(DType::int8),
                              .out = masked.tensor(work.dtype)});
  scores.reset();
  softmax_ = layers::new_scores(work, own, work.dtype);
  work.device->run(Softmax{layers::score_rows(own, masked, work.dtype),
                           layers::score_rows(own, softmax_, work.dtype)});
  drop(work, hooks, seed);
  const Buffer by_head = layers::new_stack(work, own);
  layers::multiply(work, own.batch * heads_,
                   layers::scores_of(work, own, probs_ ? probs_ : softmax_), Transpose::no,
                   layers::heads_of(work, own, v_), Transpose::no,
                   layers::heads_of(work, own, by_head));
  out = work.activation(size_);
  layers::spread(work, own, by_head, {work.matrix(out, size_), own.head_size}, heads_);
}

void DisentangledAttention::drop(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  hooks.fetch(dropout_);
  if (dropout_probability_ > 0) {
    const Tensor whole = softmax_.tensor(work.dtype);
    dropped_ = {*work.device, MemoryCategory::activations, static_cast<Bytes>(whole.numel)};
    probs_ = layers::new_scores(work, shape(work), work.dtype);
    work.device->run(Dropout{.in = whole,
                             .probability = dropout_probability_,
                             .seed = bert::seed_at(seed, index_, bert::Dropped::attention),
                             .mask = dropped_.tensor(DType::int8),
                             .out = probs_.tensor(work.dtype)});
  }
  hooks.release(dropout_);
}

}  // namespace dstune::deberta
