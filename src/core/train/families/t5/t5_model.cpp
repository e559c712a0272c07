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
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/t5/t5_attention.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/losses/causal_loss.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::t5 {
namespace {

// The places that draw random numbers: each stack has a seed of its own, and so has each of its
// blocks, which are numbered after the stack's other places.
constexpr std::uint64_t kEncoder = 0;
constexpr std::uint64_t kDecoder = 1;
enum class StackPlace : std::uint64_t { embedding, last, of_blocks };
enum class Place : std::uint64_t { scores, self, cross_scores, cross, inner, mlp };

std::uint64_t seed_at(std::uint64_t seed, StackPlace place, std::size_t block = 0) {
  return seed_of(seed, static_cast<std::uint64_t>(place) + block);
}
std::uint64_t seed_at(std::uint64_t seed, Place place) {
  return seed_of(seed, static_cast<std::uint64_t>(place));
}

nn::RmsNorm norm_of(const ModelSpec& spec, const ModelNames& names, const std::string& name) {
  return {names, name, spec.layer_norm_epsilon, 0, nn::Normalises::input};
}

/// T5LayerSelfAttention and T5LayerCrossAttention.
struct AttentionLayer {
  AttentionLayer(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                 const std::string& inner, bool causal)
      : module(names.module(name)),
        attention(spec, names, name + inner, causal),
        layer_norm(norm_of(spec, names, name + ".layer_norm")),
        dropout{names.module(name + ".dropout"), spec.residual_dropout} {}

  Value operator()(Tape& on, Value x, const AttentionInputs& inputs, std::uint64_t seed) const {
    return run_module(on, module, std::move(x), [&](const Value& hidden) {
      const Value y = attention(on, layer_norm(on, hidden), inputs);
      return nn::add(on, hidden, dropout(on, y, seed));
    });
  }

  std::size_t module;
  T5Attention attention;
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

  Value operator()(Tape& on, Value x, std::uint64_t inner_seed, std::uint64_t seed) const {
    return run_module(on, module, std::move(x), [&](const Value& hidden) {
      const Value y = run_module(on, dense, layer_norm(on, hidden), [&](const Value& normed) {
        const Value activated = act(on, wi(on, normed));
        const Value linear = wi_1 ? (*wi_1)(on, normed) : Value();
        Value gated = wi_1 ? nn::multiply(on, activated, linear) : activated;
        return wo(on, inner_dropout(on, std::move(gated), inner_seed));
      });
      return nn::add(on, hidden, dropout(on, y, seed));
    });
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
        self(spec, names, name + ".layer.0", ".SelfAttention", decodes),
        mlp(spec, names, name + (decodes ? ".layer.2" : ".layer.1")) {
    if (decodes) cross.emplace(spec, names, name + ".layer.1", ".EncDecAttention", false);
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

/// T5Block's torch.clamp() in fp16, behind which nothing is infinite.
Value clamp(Tape& on, const Value& x) {
  if (x.matrix.dtype != DType::fp16) return x;
  const auto flag = std::make_shared<Scalar>(on.device(), DType::uint8);
  flag->set_zero();
  on.run(FindInfOrNan{x.tensor(), flag->tensor()});
  Value out = new_like(on.device(), x);
  on.run(Clamp{.in = x.tensor(), .flag = flag->tensor(), .out = out.tensor()});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [flag, node = x.node, saved = on.save(x)](
                                       Tape& back, const Value& d) mutable {
    const Value kept = saved.take(back);
    Value d_x = new_like(back.device(), d);
    back.run(ClampBackward{
        .d_out = d.tensor(), .in = kept.tensor(), .flag = flag->tensor(), .d_in = d_x.tensor()});
    back.give(node, std::move(d_x));
  });
}

/// The places of the values that flow from block to block. The first block makes the biases for
/// all. The blocks of an encoder know of no encoder states, and have no cross attention.
constexpr std::size_t kHidden = 0;
constexpr std::size_t kBias = 1;
constexpr std::size_t kCrossBias = 2;
constexpr std::size_t kStates = 3;

class T5 final : public nn::TapeModel {
 public:
  T5(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
      : TapeModel(names, batch, device),
        spec_(spec),
        settings_(settings_of(spec)),
        root_(names.module("")),
        encoder_(spec, names, "encoder", false),
        decoder_(spec, names, "decoder", true),
        lm_head_(names, "lm_head",
                 settings_.tied ? std::optional(names.tensor("shared.weight")) : std::nullopt) {}

  /// @throws std::invalid_argument  always: sources and targets would have lengths of their own
  void set_lengths(const RowLengths& /*lengths*/) override {
    throw std::invalid_argument("T5 takes sequences of one length only");
  }

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value run_stack(Tape& on, const Stack& stack, const Value& tokens, const Value& states,
                  std::uint64_t seed) const;
  Values run_block(Tape& on, const Stack& stack, std::size_t index, Values flow, const Value& mask,
                   std::uint64_t seed) const;

  ModelSpec spec_;
  T5Settings settings_;
  std::size_t root_;
  Stack encoder_, decoder_;
  nn::LmHead lm_head_;
};

Values T5::run_block(Tape& on, const Stack& stack, std::size_t index, Values flow,
                     const Value& mask, std::uint64_t seed) const {
  const Block& own = stack.blocks[index];
  const auto body = [&own, mask, seed](Tape& in, Values values) {
    const auto at = [seed](Place place) { return seed_at(seed, place); };
    Value hidden = own.self(in, values[kHidden], {{}, mask, values[kBias], at(Place::scores)},
                            at(Place::self));
    hidden = clamp(in, hidden);
    if (own.cross) {
      const AttentionInputs inputs{
          values[kStates], {}, values[kCrossBias], at(Place::cross_scores)};
      hidden = clamp(in, (*own.cross)(in, std::move(hidden), inputs, at(Place::cross)));
    }
    hidden = own.mlp(in, std::move(hidden), at(Place::inner), at(Place::mlp));
    values[kHidden] = clamp(in, hidden);
    return values;
  };
  return run_layer(on, own.module, index, std::move(flow), body);
}

// The embeddings and the mask are locals of T5Stack.forward.
Value T5::run_stack(Tape& on, const Stack& stack, const Value& tokens, const Value& states,
                    std::uint64_t seed) const {
  return run_module(on, stack.module, [&] {
    const Value embedded = stack.embed_tokens.of_tokens(on, tokens);
    const Value mask = nn::attention_mask(on, {.batch = context().size,
                                               .sequence = tokens.numel() / context().size,
                                               .causal = stack.decodes});
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

// The outputs of the stacks are locals of T5ForConditionalGeneration.forward, as are the logits.
Value T5::run(Tape& on, const nn::StepInput& input) {
  return run_module(on, root_, [&] {
    const std::int64_t sequence = context().sequence_length;
    const std::int64_t targets = spec_.target_tokens(sequence);
    const std::int64_t source_rows = context().size * sequence;
    const std::int64_t target_rows = context().size * targets;
    const Value sources = nn::tokens_of(input.tokens.slice(0, source_rows));
    const Value labels = nn::tokens_of(input.tokens.slice(source_rows, target_rows));
    const Value states = run_stack(on, encoder_, sources, {}, input.seed_at(kEncoder));
    const Value shifted = new_value(on.device(), DType::int64, 1, target_rows);
    on.run(ShiftTokens{.labels = labels.tensor(),
                       .sequence = targets,
                       .start = settings_.start_token,
                       .out = shifted.tensor()});
    const Value hidden = run_stack(on, decoder_, shifted, states, input.seed_at(kDecoder));
    const double scale = 1 / std::sqrt(static_cast<double>(spec_.hidden_size));
    const Value logits =
        lm_head_.product(on, settings_.scales_output ? nn::scale(on, hidden, scale) : hidden);
    return nn::cross_entropy(on, logits, labels, loss_factor(), input.loss);
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<T5>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::t5
