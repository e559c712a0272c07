#include "core/train/families/gpt_neox/gpt_neox_model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/losses/decoder_head.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/rotary.hpp"
#include "core/train/nn/tape_model.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::gpt_neox {
namespace {

/// GPTNeoXLayer
struct Layer {
  Layer(const ModelSpec& spec, const NeoxSettings& settings, const ModelNames& names,
        const std::string& name)
      : module(names.module(name)),
        input_layernorm(names, name + ".input_layernorm", spec.layer_norm_epsilon),
        post_attention_layernorm(names, name + ".post_attention_layernorm",
                                 spec.layer_norm_epsilon),
        post_attention_dropout{names.module(name + ".post_attention_dropout"),
                               spec.residual_dropout},
        post_mlp_dropout{names.module(name + ".post_mlp_dropout"), spec.residual_dropout},
        attention(names.module(name + ".attention")),
        query_key_value(names, name + ".attention.query_key_value"),
        dense(names, name + ".attention.dense"),
        mlp(names.module(name + ".mlp")),
        dense_h_to_4h(names, name + ".mlp.dense_h_to_4h"),
        dense_4h_to_h(names, name + ".mlp.dense_4h_to_h"),
        act(names.module(name + ".mlp.act"), settings.activation) {}

  std::size_t module;
  nn::LayerNorm input_layernorm, post_attention_layernorm;
  nn::Dropout post_attention_dropout, post_mlp_dropout;
  std::size_t attention;
  nn::Linear query_key_value, dense;
  std::size_t mlp;
  nn::Linear dense_h_to_4h, dense_4h_to_h;
  nn::ActivationFunction act;
};

class GptNeox final : public nn::TapeModel {
 public:
  GptNeox(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override {
    TapeModel::set_lengths(lengths);
    rotary_.arrange(context());
  }

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value body(Tape& on, const nn::StepInput& input) const;
  Value decoder_layer(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                      const nn::StepInput& input) const;
  Value attention(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                  const nn::StepInput& input) const;
  AttentionShape shape(std::size_t layer, const nn::StepInput& input) const;

  ModelSpec spec_;
  NeoxSettings settings_;
  nn::Rotary rotary_;
  std::size_t root_, body_, rotary_module_;
  nn::Embedding embed_in_;
  nn::Dropout emb_dropout_;
  std::vector<Layer> layers_;
  nn::LayerNorm final_layer_norm_;
  nn::DecoderHead head_;
};

GptNeox::GptNeox(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
                 Device& device)
    : TapeModel(names, batch, device),
      spec_(spec),
      settings_(settings_of(spec)),
      rotary_(context(), frequencies(spec, settings_)),
      root_(names.module("")),
      body_(names.module("gpt_neox")),
      rotary_module_(names.module("gpt_neox.rotary_emb")),
      embed_in_(names, "gpt_neox.embed_in"),
      emb_dropout_{names.module("gpt_neox.emb_dropout"), spec.embedding_dropout},
      final_layer_norm_(names, "gpt_neox.final_layer_norm", spec.layer_norm_epsilon),
      head_(spec, names, settings_.tied ? std::optional(embed_in_.weight()) : std::nullopt) {
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    layers_.emplace_back(spec, settings_, names, concat("gpt_neox.layers.", layer));
  }
}

// The places that drop out: 0 is the embedding, and each layer has three.
AttentionShape GptNeox::shape(std::size_t layer, const nn::StepInput& input) const {
  return {.batch = context().size,
          .sequence = context().sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .dropout = spec_.attention_dropout,
          .seed = input.seed_at(3 * layer + 1)};
}

// torch.cat has laid the turned queries out by heads, and torch's attention lays its result out as
// its queries: sdpa's result is copied in the order of tokens, and both are kept.
Value GptNeox::attention(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                         const nn::StepInput& input) const {
  const Layer& own = layers_[layer];
  const std::vector<Value> qkv =
      nn::split_heads(on, own.query_key_value(on, x), spec_.num_heads, 3);
  const Value q = rotary_(on, qkv[0], spec_.num_heads);
  const Value k = rotary_(on, qkv[1], spec_.num_heads);
  Value out = nn::attend(on, nn::SoftmaxType::fp32, shape(layer, input), q, k, qkv[2], mask);
  if (context().attention == AttentionKind::sdpa) out = nn::copy(on, out);
  return own.dense(on, out);
}

Value GptNeox::decoder_layer(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                             const nn::StepInput& input) const {
  const Layer& own = layers_[layer];
  const auto body = [this, &own, layer, mask, input](Tape& in, const Value& hidden) {
    const auto attend = [&](const Value& normed) {
      return attention(in, layer, normed, mask, input);
    };
    const auto mlp = [&](Value inner) {
      inner = own.dense_h_to_4h(in, inner);
      inner = own.act(in, inner);
      return own.dense_4h_to_h(in, inner);
    };
    Value attn_output = run_module(in, own.attention, own.input_layernorm(in, hidden), attend);
    attn_output = own.post_attention_dropout(in, attn_output, input.seed_at(3 * layer + 2));
    if (!settings_.parallel_residual) attn_output = nn::add(in, attn_output, hidden);
    const Value& middle = settings_.parallel_residual ? hidden : attn_output;
    Value mlp_output = run_module(in, own.mlp, own.post_attention_layernorm(in, middle), mlp);
    mlp_output = own.post_mlp_dropout(in, mlp_output, input.seed_at(3 * layer + 3));
    const Value sum = nn::add(in, mlp_output, attn_output);
    return settings_.parallel_residual ? nn::add(in, sum, hidden) : sum;
  };
  return run_layer(on, own.module, layer, x, body);
}

// The embeddings and the mask are locals of GPTNeoXModel.forward.
Value GptNeox::body(Tape& on, const nn::StepInput& input) const {
  const Value embedded = embed_in_.of_tokens(on, nn::tokens_of(input.tokens));
  const Value mask = nn::attention_mask(on, shape(0, input));
  Value hidden = emb_dropout_(on, embedded, input.seed_at(0));
  run_module(on, rotary_module_, [&] {  // the angles have no gradient
    on.count_operators(kRotaryTableCalls);
    return Value();
  });
  hidden = run_layers(on, layers_.size(), std::move(hidden),
                      [this, mask, input](Tape& in, std::size_t layer, const Value& x) {
                        return decoder_layer(in, layer, x, mask, input);
                      });
  return final_layer_norm_(on, hidden);
}

Value GptNeox::run(Tape& on, const nn::StepInput& input) {
  return run_module(on, root_, [&] {
    const Value hidden = run_module(on, body_, [&] { return body(on, input); });
    return head_(on, hidden, input, loss_factor());
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<GptNeox>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::gpt_neox
