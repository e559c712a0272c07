#include "core/train/families/t5/t5_attention.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/model/t5/t5.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/attention/eager_attention.hpp"
#include "core/train/nn/elementwise.hpp"

namespace dstune::t5 {
namespace {

// T5's own eager_attention_forward() scales by 1, and its softmax is in the model's type.
Value attend_eagerly(Tape& on, const nn::BiasedShape& call, const Value& q, const Value& k,
                     const Value& v, const Value& bias, const Value& mask) {
  const std::int64_t heads = call.scores.heads;
  Value probs;
  {
    const Value keys = nn::stack_heads(on, call.of_keys(), k, heads);
    const Value queries = nn::stack_heads(on, call.of_queries(), q, heads);
    Value scores = nn::scale(on, nn::multiply_stacks(on, queries, keys, Transpose::yes), 1);
    scores = nn::add_bias(on, call.scores, scores, bias);
    if (mask) scores = nn::add_mask(on, call.of_queries(), scores, mask);
    probs = nn::softmax(on, scores, scores.matrix.dtype);
  }
  probs = nn::Dropout{.module = {}, .probability = call.dropout}(on, std::move(probs), call.seed);
  const Value values = nn::stack_heads(on, call.of_keys(), v, heads);
  return nn::spread_heads(on, call.of_queries(),
                          nn::multiply_stacks(on, probs, values, Transpose::no));
}

// Where transformers checkpoints layers, it makes these zeros need a gradient, which nobody reads.
Value make_zeros(Tape& on, const ScoreShape& shape) {
  Value zeros = new_stack(on.device(), on.context().dtype, shape.heads, shape.queries, shape.keys);
  on.run(FillZero{zeros.tensor()});
  const bool checkpoints = on.context().checkpointing.unit == ActivationCheckpointing::Unit::layer;
  if (!on.records(checkpoints)) return zeros;
  return on.record(std::move(zeros), [](Tape&, const Value&) {});
}

}  // namespace

T5Attention::T5Attention(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                         bool causal)
    : heads_(spec.num_heads),
      head_size_(settings_of(spec).head_size),
      max_distance_(settings_of(spec).max_distance),
      dropout_(spec.attention_dropout),
      causal_(causal),
      module_(names.module(name)),
      q_(names, name + ".q"),
      k_(names, name + ".k"),
      v_(names, name + ".v"),
      o_(names, name + ".o"),
      buckets_(settings_of(spec).buckets) {
  if (names.find_module(name + ".relative_attention_bias")) {
    relative_attention_bias_.emplace(names, name + ".relative_attention_bias");
  }
}

nn::BiasedShape T5Attention::shape(const Tape& on, const Value& q, const Value& k,
                                   std::uint64_t seed) const {
  const std::int64_t batch = on.context().size;
  return {.scores = {batch, heads_, q.matrix.rows / batch, k.matrix.rows / batch},
          .head_size = head_size_,
          .causal = causal_,
          .dropout = dropout_,
          .seed = seed};
}

// compute_bias(), or in cross attention zeros, which are added as any other bias is.
Value T5Attention::make_bias(Tape& on, const nn::BiasedShape& call) const {
  if (!relative_attention_bias_) return make_zeros(on, call.scores);
  const Value numbers = new_value(on.device(), DType::int64, 1, call.scores.square());
  on.run(PositionBuckets{.queries = call.scores.queries,
                         .keys = call.scores.keys,
                         .bidirectional = !causal_,
                         .buckets = buckets_,
                         .max_distance = max_distance_,
                         .out = numbers.tensor()});
  return (*relative_attention_bias_)(on, numbers);
}

Value T5Attention::operator()(Tape& on, const Value& x, const AttentionInputs& inputs) const {
  return run_module(on, module_, x, [&](const Value& hidden) {
    const Value& source = inputs.states ? inputs.states : hidden;
    const Value q = q_(on, hidden);
    const Value k = k_(on, source);
    const Value v = v_(on, source);
    const nn::BiasedShape call = shape(on, q, k, inputs.seed);
    if (!inputs.bias) inputs.bias = make_bias(on, call);
    const bool eager = nn::is_eager(on.context(), call.of_queries());
    return o_(on, eager ? attend_eagerly(on, call, q, k, v, inputs.bias, inputs.mask)
                        : nn::attend_with_bias(on, call, q, k, v, inputs.bias));
  });
}

}  // namespace dstune::t5
