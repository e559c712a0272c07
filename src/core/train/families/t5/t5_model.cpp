#include "core/train/families/t5/t5_model.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/device/operations/clamp.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/norm_and_overflow.hpp"
#include "core/device/operations/shift_tokens.hpp"
#include "core/device/scalar.hpp"
#include "core/train/nn/attention.hpp"
#include "core/train/nn/biased_attention.hpp"
#include "core/train/nn/cross_entropy.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/scores.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::t5 {
namespace {

// Where chance has a part: each stack has a seed of its own, and each of its blocks, which come
// behind its other places.
constexpr std::uint64_t kEncoder = 0;
constexpr std::uint64_t kDecoder = 1;
enum class StackPlace : std::uint64_t { embedding, last, of_blocks };
enum class Place : std::uint64_t { scores, self, cross_scores, cross, inner, mlp };

std::uint64_t seed_at(std::uint64_t seed, StackPlace place, std::size_t block = 0) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(place) + block);
}
std::uint64_t seed_at(std::uint64_t seed, Place place) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(place));
}

nn::RmsNorm norm_of(const ModelSpec& spec, const ModelNames& names, const std::string& name) {
  return {names, name, spec.layer_norm_epsilon, 0, nn::Normalises::input};
}

/// T5LayerSelfAttention and T5LayerCrossAttention.
struct AttentionLayer {
  AttentionLayer(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                 const std::string& inner)
      : module(names.module(name)),
        attention(names.module(inner)),
        q(names, inner + ".q"),
        k(names, inner + ".k"),
        v(names, inner + ".v"),
        o(names, inner + ".o"),
        layer_norm(norm_of(spec, names, name + ".layer_norm")),
        dropout{names.module(name + ".dropout"), spec.residual_dropout} {
    if (names.find_module(inner + ".relative_attention_bias")) {
      relative_attention_bias.emplace(names, inner + ".relative_attention_bias");
    }
  }

  std::size_t module, attention;
  nn::Linear q, k, v, o;
  std::optional<nn::Embedding> relative_attention_bias;  ///< of the first in a stack
  nn::RmsNorm layer_norm;
  nn::Dropout dropout;
};

/// T5LayerFF with T5DenseActDense, or T5DenseGatedActDense.
struct FeedForward {
  FeedForward(const ModelSpec& spec, const ModelNames& names, const std::string& name)
      : FeedForward(spec, names, name, name + ".DenseReluDense", settings_of(spec)) {}
  FeedForward(const ModelSpec& spec, const ModelNames& names, const std::string& name,
              const std::string& inner, const T5Settings& settings)
      : module(names.module(name)),
        dense(names.module(inner)),
        wi(names, inner + (settings.gated ? ".wi_0" : ".wi")),
        wo(names, inner + ".wo"),
        inner_dropout{names.module(inner + ".dropout"), spec.residual_dropout},
        act(names.module(inner + ".act"), settings.activation),
        layer_norm(norm_of(spec, names, name + ".layer_norm")),
        dropout{names.module(name + ".dropout"), spec.residual_dropout} {
    if (settings.gated) wi_1.emplace(names, inner + ".wi_1");
  }

  std::size_t module, dense;
  nn::Linear wi, wo;
  std::optional<nn::Linear> wi_1;
  nn::Dropout inner_dropout;
  nn::ActivationFunction act;
  nn::RmsNorm layer_norm;
  nn::Dropout dropout;
};

/// T5Block
struct Block {
  Block(const ModelSpec& spec, const ModelNames& names, const std::string& name, bool decodes)
      : module(names.module(name)),
        self(spec, names, name + ".layer.0", name + ".layer.0.SelfAttention"),
        mlp(spec, names, name + (decodes ? ".layer.2" : ".layer.1")) {
    if (decodes) cross.emplace(spec, names, name + ".layer.1", name + ".layer.1.EncDecAttention");
  }

  std::size_t module;
  AttentionLayer self;
  std::optional<AttentionLayer> cross;
  FeedForward mlp;
};

/// T5Stack: the encoder or the decoder.
struct Stack {
  Stack(const ModelSpec& spec, const ModelNames& names, const std::string& name, bool decoder)
      : decodes(decoder),
        module(names.module(name)),
        embed_tokens(names, names.module(name + ".embed_tokens"), names.tensor("shared.weight")),
        first_dropout{names.module(name + ".dropout"), spec.embedding_dropout},
        final_layer_norm(norm_of(spec, names, name + ".final_layer_norm")),
        last_dropout{first_dropout.module, spec.residual_dropout} {
    const std::int64_t count = decodes ? settings_of(spec).decoder_layers : spec.num_layers;
    for (std::int64_t index = 0; index < count; ++index) {
      blocks.emplace_back(spec, names, concat(name, ".block.", index), decodes);
    }
  }

  bool decodes;
  std::size_t module;
  nn::Embedding embed_tokens;
  nn::Dropout first_dropout;
  std::vector<Block> blocks;
  nn::RmsNorm final_layer_norm;
  nn::Dropout last_dropout;
};

nn::Product head_of(const ModelSpec& spec, const ModelNames& names) {
  const bool tied = settings_of(spec).tied;
  return {.module = names.module("lm_head"),
          .weight = names.tensor(tied ? "shared.weight" : "lm_head.weight"),
          .bias = {},
          .in = spec.hidden_size,
          .out = spec.vocab_size};
}

/// T5Block's torch.clamp() in fp16, of which nothing is infinite behind it.
Value clamp(Tape& on, const Value& x) {
  if (x.matrix.dtype != DType::fp16) return x;
  const auto flag = std::make_shared<Scalar>(on.device(), DType::int8);
  flag->set_zero();
  on.device().run(FindInfOrNan{x.tensor(), flag->tensor()});
  Value out = new_like(on.device(), x);
  on.device().run(Clamp{.in = x.tensor(), .flag = flag->tensor(), .out = out.tensor()});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [flag, node = x.node, saved = on.save(x)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_x = new_like(back.device(), d);
    back.device().run(ClampBackward{
        .d_out = d.tensor(), .in = kept.tensor(), .flag = flag->tensor(), .d_in = d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

// Of what flows from block to block.
enum Flow : std::size_t { kHidden, kBias, kCrossBias, kStates };

class T5 final : public nn::TapeModel {
 public:
  T5(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
      : TapeModel(batch, device),
        spec_(spec),
        settings_(settings_of(spec)),
        root_(names.module("")),
        encoder_(spec, names, "encoder", false),
        decoder_(spec, names, "decoder", true),
        lm_head_(head_of(spec, names)) {}

  /// @throws std::invalid_argument  in any case: sources and targets would have their own
  void set_lengths(const RowLengths& /*lengths*/) override {
    throw std::invalid_argument("T5 takes sequences of one length only");
  }

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value run_stack(Tape& on, const Stack& stack, const Value& tokens, const Value& states,
                  std::uint64_t seed) const;
  Values run_block(Tape& on, const Stack& stack, std::size_t index, Values flow, const Value& mask,
                   std::uint64_t seed) const;
  Value attend(Tape& on, const AttentionLayer& layer, const Value& x, const Value& states,
               Value& bias, const Value& mask, bool causal, std::uint64_t seed) const;
  Value attend_eagerly(Tape& on, const nn::BiasedShape& call, const Value& q, const Value& k,
                       const Value& v, const Value& bias, const Value& mask) const;
  Value make_bias(Tape& on, const AttentionLayer& layer, const nn::BiasedShape& call) const;
  nn::BiasedShape shape(std::int64_t queries, std::int64_t keys, bool causal,
                        std::uint64_t seed) const;

  ModelSpec spec_;
  T5Settings settings_;
  std::size_t root_;
  Stack encoder_, decoder_;
  nn::Product lm_head_;
};

/// @param queries  rows of all sequences, as keys
nn::BiasedShape T5::shape(std::int64_t queries, std::int64_t keys, bool causal,
                          std::uint64_t seed) const {
  const std::int64_t batch = work().micro_batch;
  return {.scores = {batch, spec_.num_heads, queries / batch, keys / batch},
          .head_size = settings_.head_size,
          .causal = causal,
          .dropout = spec_.attention_dropout,
          .seed = seed};
}

// Cross attention adds zeros, which transformers makes like any other.
Value T5::make_bias(Tape& on, const AttentionLayer& layer, const nn::BiasedShape& call) const {
  const ScoreShape& scores = call.scores;
  if (!layer.relative_attention_bias) {
    Value zeros = new_stack(on.device(), work().dtype, scores.heads, scores.queries, scores.keys);
    on.device().run(FillZero{zeros.tensor()});
    return zeros;
  }
  const Value numbers = new_value(on.device(), DType::int64, 1, scores.square());
  on.device().run(PositionBuckets{.queries = scores.queries,
                                  .keys = scores.keys,
                                  .bidirectional = !call.causal,
                                  .buckets = settings_.buckets,
                                  .max_distance = settings_.max_distance,
                                  .out = numbers.tensor()});
  return (*layer.relative_attention_bias)(on, numbers);
}

// T5's own eager_attention_forward(), which scales by 1, and whose softmax is of the model's type.
Value T5::attend_eagerly(Tape& on, const nn::BiasedShape& call, const Value& q, const Value& k,
                         const Value& v, const Value& bias, const Value& mask) const {
  Value probs;
  {
    const Value keys = nn::stack_heads(on, call.of_keys(), k, call.scores.heads);
    const Value queries = nn::stack_heads(on, call.of_queries(), q, call.scores.heads);
    Value scores = nn::scale(on, nn::multiply_stacks(on, queries, keys, Transpose::yes), 1);
    scores = nn::add_bias(on, call.scores, scores, bias);
    if (mask) scores = nn::add_mask(on, call.of_queries(), scores, mask);
    probs = nn::softmax(on, scores, scores.matrix.dtype);
  }
  probs = nn::Dropout{.module = {}, .probability = call.dropout}(on, std::move(probs), call.seed);
  const Value values = nn::stack_heads(on, call.of_keys(), v, call.scores.heads);
  return nn::spread_heads(on, call.of_queries(),
                          nn::multiply_stacks(on, probs, values, Transpose::no));
}

/// T5Attention, of a stack's sequences to themselves, or to the encoder's.
/// @param states  the encoder's; empty: x
/// @param bias    empty: made
Value T5::attend(Tape& on, const AttentionLayer& layer, const Value& x, const Value& states,
                 Value& bias, const Value& mask, bool causal, std::uint64_t seed) const {
  return run_module(on, layer.attention, x, [&](const Value& hidden) {
    const Value& source = states ? states : hidden;
    const Value q = layer.q(on, hidden);
    const Value k = layer.k(on, source);
    const Value v = layer.v(on, source);
    const nn::BiasedShape call = shape(q.matrix.rows, k.matrix.rows, causal, seed);
    if (!bias) bias = make_bias(on, layer, call);
    const Value heads = nn::is_eager(work(), call.of_queries())
                            ? attend_eagerly(on, call, q, k, v, bias, mask)
                            : nn::attend_with_bias(on, call, q, k, v, bias);
    return layer.o(on, heads);
  });
}

// The first block makes the biases for all.
Values T5::run_block(Tape& on, const Stack& stack, std::size_t index, Values flow,
                     const Value& mask, std::uint64_t seed) const {
  const Block& own = stack.blocks[index];
  const auto body = [this, &own, causal = stack.decodes, mask, seed](Tape& in, Values values) {
    const auto attention = [&](const AttentionLayer& layer, Value x, const Value& states, Flow bias,
                               const Value& hides, Place scores, Place residual) {
      x = run_module(in, layer.module, std::move(x), [&](const Value& hidden) {
        const Value y = attend(in, layer, layer.layer_norm(in, hidden), states, values[bias], hides,
                               causal && !states, seed_at(seed, scores));
        return nn::add(in, hidden, layer.dropout(in, y, seed_at(seed, residual)));
      });
      return clamp(in, x);
    };
    const auto dense = [&](const Value& normed) {
      const Value act = own.mlp.act(in, own.mlp.wi(in, normed));
      const Value linear = own.mlp.wi_1 ? (*own.mlp.wi_1)(in, normed) : Value();
      Value inner = linear ? nn::multiply(in, act, linear) : act;
      inner = own.mlp.inner_dropout(in, std::move(inner), seed_at(seed, Place::inner));
      return own.mlp.wo(in, std::move(inner));
    };
    const auto mlp = [&](const Value& hidden) {
      const Value y = run_module(in, own.mlp.dense, own.mlp.layer_norm(in, hidden), dense);
      return nn::add(in, hidden, own.mlp.dropout(in, y, seed_at(seed, Place::mlp)));
    };
    Value hidden =
        attention(own.self, values[kHidden], {}, kBias, mask, Place::scores, Place::self);
    if (own.cross) {
      hidden = attention(*own.cross, std::move(hidden), values[kStates], kCrossBias, {},
                         Place::cross_scores, Place::cross);
    }
    values[kHidden] = clamp(in, run_module(in, own.mlp.module, std::move(hidden), mlp));
    return values;
  };
  return run_layer(on, own.module, index, std::move(flow), body);
}

// The embeddings are a local of T5Stack.forward, as is the mask.
Value T5::run_stack(Tape& on, const Stack& stack, const Value& tokens, const Value& states,
                    std::uint64_t seed) const {
  return run_module(on, stack.module, [&] {
    const Value embedded = stack.embed_tokens(on, tokens);
    const nn::BiasedShape call = shape(tokens.numel(), tokens.numel(), stack.decodes, seed);
    const Value mask = nn::attention_mask(on, call.of_queries());
    const std::uint64_t at_embedding = seed_at(seed, StackPlace::embedding);
    Values flow{stack.first_dropout(on, embedded, at_embedding), {}, {}, states};
    flow = run_layers(on, stack.blocks.size(), std::move(flow),
                      [this, &stack, mask, seed](Tape& in, std::size_t index, Values values) {
                        const std::uint64_t own = seed_at(seed, StackPlace::of_blocks, index);
                        return run_block(in, stack, index, std::move(values), mask, own);
                      });
    const Value normed = stack.final_layer_norm(on, flow[kHidden]);
    return stack.last_dropout(on, normed, seed_at(seed, StackPlace::last));
  });
}

// What the stacks return are locals of T5ForConditionalGeneration.forward, as are the logits.
Value T5::run(Tape& on, const nn::StepInput& input) {
  return run_module(on, root_, [&] {
    const std::int64_t sequence = work().sequence_length;
    const std::int64_t targets = spec_.target_tokens(sequence);
    const std::int64_t source_rows = work().micro_batch * sequence;
    const std::int64_t target_rows = work().micro_batch * targets;
    const Value sources = nn::tokens_of(input.tokens.slice(0, source_rows));
    const Value labels = nn::tokens_of(input.tokens.slice(source_rows, target_rows));
    const Value states = run_stack(on, encoder_, sources, {}, input.seed_at(kEncoder));
    const Value shifted = new_value(on.device(), DType::int64, 1, target_rows);
    on.device().run(ShiftTokens{.labels = labels.tensor(),
                                .sequence = targets,
                                .start = settings_.start_token,
                                .out = shifted.tensor()});
    const Value hidden = run_stack(on, decoder_, shifted, states, input.seed_at(kDecoder));
    const double scale = 1 / std::sqrt(static_cast<double>(spec_.hidden_size));
    const Value logits =
        lm_head_(on, settings_.scales_output ? nn::scale(on, hidden, scale) : hidden);
    return nn::cross_entropy(on, logits, labels, loss_factor(), input.loss);
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<T5>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::t5
