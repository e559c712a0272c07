#include "core/train/families/gpt2/gpt2_model.hpp"

#include <cmath>
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
#include "core/train/nn/tape_model.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::gpt2 {
namespace {

/// GPT2Block
struct Block {
  Block(const ModelSpec& spec, const Gpt2Settings& settings, const ModelNames& names,
        const std::string& name)
      : module(names.module(name)),
        ln_1(names, name + ".ln_1", spec.layer_norm_epsilon),
        attn(names.module(name + ".attn")),
        c_attn(names, name + ".attn.c_attn"),
        c_proj(names, name + ".attn.c_proj"),
        resid_dropout{names.module(name + ".attn.resid_dropout"), spec.residual_dropout},
        ln_2(names, name + ".ln_2", spec.layer_norm_epsilon),
        mlp(names.module(name + ".mlp")),
        c_fc(names, name + ".mlp.c_fc"),
        mlp_c_proj(names, name + ".mlp.c_proj"),
        act(names.module(name + ".mlp.act"), settings.activation),
        dropout{names.module(name + ".mlp.dropout"), spec.residual_dropout} {}

  std::size_t module;
  nn::LayerNorm ln_1;
  std::size_t attn;
  nn::Linear c_attn, c_proj;
  nn::Dropout resid_dropout;
  nn::LayerNorm ln_2;
  std::size_t mlp;
  nn::Linear c_fc, mlp_c_proj;
  nn::ActivationFunction act;
  nn::Dropout dropout;
};

class Gpt2 final : public nn::TapeModel {
 public:
  Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value transformer(Tape& on, const nn::StepInput& input) const;
  Value run_block(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                  const nn::StepInput& input) const;
  AttentionShape shape(std::size_t layer, const nn::StepInput& input) const;

  ModelSpec spec_;
  Gpt2Settings settings_;
  std::size_t root_, transformer_;
  nn::Embedding wte_, wpe_;
  nn::Dropout drop_;
  std::vector<Block> blocks_;
  nn::LayerNorm ln_f_;
  nn::DecoderHead head_;
};

Gpt2::Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : TapeModel(names, batch, device),
      spec_(spec),
      settings_(settings_of(spec)),
      root_(names.module("")),
      transformer_(names.module("transformer")),
      wte_(names, "transformer.wte"),
      wpe_(names, "transformer.wpe"),
      drop_{names.module("transformer.drop"), spec.embedding_dropout},
      ln_f_(names, "transformer.ln_f", spec.layer_norm_epsilon),
      head_(spec, names, settings_.tied ? std::optional(wte_.weight()) : std::nullopt) {
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    blocks_.emplace_back(spec, settings_, names, concat("transformer.h.", layer));
  }
}

// The places that drop out: 0 is the embedding, and each block has three.
AttentionShape Gpt2::shape(std::size_t layer, const nn::StepInput& input) const {
  double scale =
      settings_.scales_scores ? 1 / std::sqrt(static_cast<double>(spec_.head_size())) : 1;
  if (settings_.scales_by_inverse_layer) scale /= static_cast<double>(layer + 1);
  return {.batch = context().size,
          .sequence = context().sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .scale = scale,
          .dropout = spec_.attention_dropout,
          .seed = input.seed_at(3 * layer + 1)};
}

Value Gpt2::run_block(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                      const nn::StepInput& input) const {
  const Block& own = blocks_[layer];
  const auto block = [this, &own, layer, mask, input](Tape& in, const Value& hidden) {
    const auto attention = [&](const Value& normed) {
      const std::vector<Value> qkv = nn::split(in, own.c_attn(in, normed), 3);
      const Value heads =
          nn::attend(in, nn::SoftmaxType::model, shape(layer, input), qkv[0], qkv[1], qkv[2], mask);
      return own.resid_dropout(in, own.c_proj(in, heads), input.seed_at(3 * layer + 2));
    };
    const auto mlp = [&](const Value& normed) {
      const Value inner = own.act(in, own.c_fc(in, normed));
      return own.dropout(in, own.mlp_c_proj(in, inner), input.seed_at(3 * layer + 3));
    };
    // attn_output is a local of GPT2Block.forward, which lives until that function returns.
    const Value attn_output = run_module(in, own.attn, own.ln_1(in, hidden), attention);
    const Value middle = nn::add(in, attn_output, hidden);
    return nn::add(in, middle, run_module(in, own.mlp, own.ln_2(in, middle), mlp));
  };
  return run_layer(on, own.module, layer, x, block);
}

// The embeddings and the mask are locals of GPT2Model.forward.
Value Gpt2::transformer(Tape& on, const nn::StepInput& input) const {
  const Value tokens = wte_.of_tokens(on, nn::tokens_of(input.tokens));
  const Value places = wpe_(on, nn::positions(on, context().sequence_length, 0));
  Value hidden = drop_(on, nn::add_broadcast(on, tokens, places), input.seed_at(0));
  const Value mask = nn::attention_mask(on, shape(0, input));
  hidden = run_layers(on, blocks_.size(), std::move(hidden),
                      [this, mask, input](Tape& in, std::size_t layer, const Value& x) {
                        return run_block(in, layer, x, mask, input);
                      });
  return ln_f_(on, hidden);
}

Value Gpt2::run(Tape& on, const nn::StepInput& input) {
  return run_module(on, root_, [&] {
    const Value hidden = run_module(on, transformer_, [&] { return transformer(on, input); });
    return head_(on, hidden, input, loss_factor());
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Gpt2>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::gpt2
