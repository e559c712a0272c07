#include "core/train/families/llama/llama_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/llama/llama_parts.hpp"
#include "core/train/nn/attention/attention.hpp"
#include "core/train/nn/embedding.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"
#include "core/train/nn/losses/decoder_head.hpp"
#include "core/train/nn/norm.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::llama {
namespace {

/// LlamaDecoderLayer, and the decoder layers of Llama's kin.
struct Layer {
  Layer(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
        std::int64_t index);

  std::size_t module;
  std::unique_ptr<AttentionPart> attention;
  std::unique_ptr<MlpPart> mlp;
  nn::RmsNorm input_norm, middle_norm;
  std::optional<nn::RmsNorm> post_attention_norm, post_mlp_norm;
  nn::Dropout attention_dropout, mlp_dropout;  // only Phi-3 has them
};

Layer::Layer(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
             std::int64_t index)
    : module(names.module(concat("model.layers.", index))),
      attention(
          make_attention(spec, settings, names, concat("model.layers.", index, ".self_attn"))),
      mlp(make_mlp(spec, settings, names, concat("model.layers.", index, ".mlp"), index)),
      input_norm(names, concat("model.layers.", index, ".input_layernorm"), spec.layer_norm_epsilon,
                 settings.is_gemma ? 1 : 0),
      middle_norm(
          names,
          concat("model.layers.", index,
                 settings.post_norms ? ".pre_feedforward_layernorm" : ".post_attention_layernorm"),
          spec.layer_norm_epsilon, settings.is_gemma ? 1 : 0) {
  const std::string name = concat("model.layers.", index);
  if (settings.post_norms) {
    post_attention_norm.emplace(names, name + ".post_attention_layernorm", spec.layer_norm_epsilon,
                                settings.is_gemma ? 1 : 0);
    post_mlp_norm.emplace(names, name + ".post_feedforward_layernorm", spec.layer_norm_epsilon,
                          settings.is_gemma ? 1 : 0);
  }
  if (settings.is_phi) {
    attention_dropout = {names.module(name + ".resid_attn_dropout"), spec.residual_dropout};
    mlp_dropout = {names.module(name + ".resid_mlp_dropout"), spec.residual_dropout};
  }
}

/// The places of one layer that drop out.
enum class Dropped : std::uint64_t { scores, attention, mlp };

std::uint64_t seed_at(const nn::StepInput& input, std::size_t layer, Dropped place) {
  constexpr std::uint64_t kMostLayers = std::uint64_t{1} << 20U;
  return input.seed_at(static_cast<std::uint64_t>(place) * kMostLayers + layer);
}

// `value` rounded to a number of the model's type.
double rounded(double value, DType dtype) {
  const auto number = static_cast<float>(value);
  if (dtype == DType::bf16) return to_float(from_float<BFloat16>(number));
  if (dtype == DType::fp16) return to_float(from_float<Float16>(number));
  return number;
}

class Llama final : public nn::TapeModel {
 public:
  Llama(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
        const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override;

 private:
  /// The masks of layers without and with a window; empty where the attention takes none, or makes
  /// its own.
  struct Masks {
    Value of_all;
    Value of_windows;
  };

  Value run(Tape& on, const nn::StepInput& input) override;
  Value decoder(Tape& on, const nn::StepInput& input);
  Value run_decoder_layer(Tape& on, std::size_t index, const Value& x, const Masks& masks,
                          const nn::StepInput& input);
  AttentionShape shape(std::size_t layer, const nn::StepInput& input) const;
  Masks make_masks(Tape& on, const nn::StepInput& input) const;
  Buffer window_of_booleans(const Masks& masks) const;
  int rotaries() const;
  bool has_balance_loss() const {
    return spec_.task == Task::causal_lm && settings_.experts.balance > 0 && has_experts_;
  }

  ModelSpec spec_;
  LlamaSettings settings_;
  std::size_t root_, body_, rotary_module_;
  nn::Embedding embedding_;
  double embedding_scale_ = 1;
  nn::Rotary rotary_;
  std::optional<nn::Rotary> windowed_rotary_;
  std::vector<Layer> layers_;
  nn::RmsNorm norm_;
  nn::DecoderHead head_;
  bool has_experts_;
  bool collects_routes_ = false;  // false in backward: no route counts twice
  std::vector<nn::Routes> routes_;
};

Llama::Llama(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
             const MicroBatch& batch, Device& device)
    : TapeModel(names, batch, device),
      spec_(spec),
      settings_(settings),
      root_(names.module("")),
      body_(names.module("model")),
      rotary_module_(names.module("model.rotary_emb")),
      embedding_(names, "model.embed_tokens"),
      rotary_(context(), frequencies_of(spec, settings.rope, batch.sequence_length)),
      norm_(names, "model.norm", spec.layer_norm_epsilon, settings.is_gemma ? 1 : 0),
      head_(spec, names, settings.tied ? std::optional(embedding_.weight()) : std::nullopt,
            settings.logit_cap),
      has_experts_(std::ranges::count(settings.experts.in_layer, true) > 0) {
  if (settings.never_sdpa && context_.attention == AttentionKind::sdpa) {
    context_.attention = AttentionKind::eager;
  }
  if (settings.is_gemma) {
    embedding_scale_ = rounded(std::sqrt(static_cast<double>(spec.hidden_size)), batch.dtype);
  }
  if (!settings.windowed_rope.empty()) {
    windowed_rotary_.emplace(context(),
                             frequencies_of(spec, settings.windowed_rope, batch.sequence_length));
  }
  for (std::int64_t index = 0; index < spec.num_layers; ++index) {
    layers_.emplace_back(spec, settings, names, index);
  }
}

void Llama::set_lengths(const RowLengths& lengths) {
  if (has_balance_loss() && (lengths.is_packed || !lengths.sequences.empty())) {
    throw std::invalid_argument("the loss of routers takes no padding");
  }
  TapeModel::set_lengths(lengths);
  rotary_.arrange(context());
  if (windowed_rotary_) windowed_rotary_->arrange(context());
}

AttentionShape Llama::shape(std::size_t layer, const nn::StepInput& input) const {
  return {.batch = context().size,
          .sequence = context().sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = settings_.kv_heads,
          .head_size = settings_.head_size,
          .window = settings_.window_of(static_cast<std::int64_t>(layer)),
          .scale = settings_.score_scale,
          .softcap = settings_.score_cap,
          .dropout = spec_.attention_dropout,
          .seed = seed_at(input, layer, Dropped::scores)};
}

Llama::Masks Llama::make_masks(Tape& on, const nn::StepInput& input) const {
  const auto make = [&](bool windowed) -> Value {
    const auto layer = std::ranges::find(settings_.windowed, windowed);
    if (layer == settings_.windowed.end()) return {};
    return nn::attention_mask(
        on, shape(static_cast<std::size_t>(layer - settings_.windowed.begin()), input));
  };
  Masks masks;
  masks.of_all = make(false);
  masks.of_windows = make(true);
  return masks;
}

// torch makes sdpa's masks of a mask of booleans, for all sequences of the batch.
Buffer Llama::window_of_booleans(const Masks& masks) const {
  const std::int64_t s = context().sequence_length;
  const bool has_window = settings_.window > 0 && settings_.window <= s && !masks.of_windows;
  if (context().attention != AttentionKind::sdpa || !(has_window || context().is_padded()))
    return {};
  const std::int64_t sequences = context().is_padded() ? context().size : 1;
  return {*context().device, MemoryCategory::activations, static_cast<Bytes>(sequences * s * s)};
}

// How often the rotary module runs: once for each kind of layer that there is.
int Llama::rotaries() const {
  if (!windowed_rotary_) return 1;
  const auto with_window = std::ranges::count(settings_.windowed, true);
  return with_window > 0 && with_window < std::ssize(settings_.windowed) ? 2 : 1;
}

Value Llama::run_decoder_layer(Tape& on, std::size_t index, const Value& x, const Masks& masks,
                               const nn::StepInput& input) {
  const bool windowed = settings_.windowed[index];
  const LayerContext context{.rotary = windowed_rotary_ && windowed ? &*windowed_rotary_ : &rotary_,
                             .mask = windowed ? masks.of_windows : masks.of_all,
                             .shape = shape(index, input),
                             .expert_seed = seed_of(seed_at(input, index, Dropped::scores)),
                             .routes = nullptr};
  const auto body = [this, index, context, input](Tape& in, Value residual) {
    const Layer& own = layers_[index];
    LayerContext with_routes = context;
    if (collects_routes_) with_routes.routes = &routes_;
    Value hidden = own.input_norm(in, residual);
    hidden = (*own.attention)(in, hidden, context);
    if (own.post_attention_norm) hidden = (*own.post_attention_norm)(in, std::move(hidden));
    hidden =
        own.attention_dropout(in, std::move(hidden), seed_at(input, index, Dropped::attention));
    residual = nn::add(in, residual, hidden);
    hidden = own.middle_norm(in, residual);
    hidden = (*own.mlp)(in, std::move(hidden), with_routes);
    if (own.post_mlp_norm) hidden = (*own.post_mlp_norm)(in, std::move(hidden));
    hidden = own.mlp_dropout(in, std::move(hidden), seed_at(input, index, Dropped::mlp));
    return nn::add(in, residual, hidden);
  };
  return run_layer(on, layers_[index].module, index, x, body);
}

// The masks and the embeddings are locals of LlamaModel.forward, which live until it returns.
Value Llama::decoder(Tape& on, const nn::StepInput& input) {
  const Value embedded = embedding_.of_tokens(on, nn::tokens_of(input.tokens), embedding_scale_);
  for (int kind = 0; kind < rotaries(); ++kind) {
    run_module(on, rotary_module_, [&] {
      on.count_operators(kRotaryTableCalls);
      return Value();
    });
  }
  const Masks masks = make_masks(on, input);
  const Buffer booleans = window_of_booleans(masks);
  const Value hidden =
      run_layers(on, layers_.size(), embedded,
                 [this, masks, input](Tape& in, std::size_t layer, const Value& x) {
                   return run_decoder_layer(in, layer, x, masks, input);
                 });
  return norm_(on, hidden);
}

Value Llama::run(Tape& on, const nn::StepInput& input) {
  collects_routes_ = has_balance_loss();
  return run_module(on, root_, [&] {
    const Value hidden = run_module(on, body_, [&] { return decoder(on, input); });
    Value loss = head_(on, hidden, input, loss_factor());
    if (!has_balance_loss()) return loss;
    const Value balance =
        nn::balance_loss(on, routes_, settings_.experts.balance, input.loss, loss_factor());
    collects_routes_ = false;
    routes_.clear();
    return nn::sum_of_losses(on, {loss, balance});
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Llama>(spec, settings_of(spec), ModelNames(parameters), batch, device);
}

}  // namespace dstune::llama
