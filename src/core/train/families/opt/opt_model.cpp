#include "core/train/families/opt/opt_model.hpp"

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

namespace dstune::opt {
namespace {

/// OPTDecoderLayer, whose fully connected layers get all tokens as one matrix.
struct Layer {
  Layer(const ModelSpec& spec, const OptSettings& settings, const ModelNames& names,
        const std::string& name)
      : module(names.module(name)),
        self_attn(names.module(name + ".self_attn")),
        q_proj(names, name + ".self_attn.q_proj"),
        k_proj(names, name + ".self_attn.k_proj"),
        v_proj(names, name + ".self_attn.v_proj"),
        out_proj(names, name + ".self_attn.out_proj"),
        self_attn_layer_norm(names, name + ".self_attn_layer_norm", spec.layer_norm_epsilon),
        fc1(names, name + ".fc1", true),
        activation_fn(names.module(name + ".activation_fn"), settings.activation),
        fc2(names, name + ".fc2", true),
        final_layer_norm(names, name + ".final_layer_norm", spec.layer_norm_epsilon) {}

  std::size_t module, self_attn;
  nn::Linear q_proj, k_proj, v_proj, out_proj;
  nn::LayerNorm self_attn_layer_norm;
  nn::Linear fc1;
  nn::ActivationFunction activation_fn;
  nn::Linear fc2;
  nn::LayerNorm final_layer_norm;
};

class Opt final : public nn::TapeModel {
 public:
  Opt(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

 private:
  Value run(Tape& on, const nn::StepInput& input) override;
  Value decoder(Tape& on, const nn::StepInput& input) const;
  Value decoder_layer(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                      const nn::StepInput& input) const;
  Value attention(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                  const nn::StepInput& input) const;
  AttentionShape shape(std::size_t layer, const nn::StepInput& input) const;

  ModelSpec spec_;
  OptSettings settings_;
  std::size_t root_, decoder_;
  std::optional<std::size_t> body_;  ///< the module "model", if its forward runs
  nn::Embedding embed_tokens_, embed_positions_;
  std::optional<nn::Linear> project_in_, project_out_;
  nn::Dropout dropout_;  ///< a function, which has no hooks
  std::vector<Layer> layers_;
  std::optional<nn::LayerNorm> final_layer_norm_;
  nn::DecoderHead head_;
};

Opt::Opt(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : TapeModel(names, batch, device),
      spec_(spec),
      settings_(settings_of(spec)),
      root_(names.module("")),
      decoder_(names.module("model.decoder")),
      embed_tokens_(names, "model.decoder.embed_tokens"),
      embed_positions_(names, "model.decoder.embed_positions"),
      dropout_{.module = {}, .probability = spec.residual_dropout},
      head_(spec, names, settings_.tied ? std::optional(embed_tokens_.weight()) : std::nullopt) {
  if (spec.task == Task::sequence_classification) body_ = names.module("model");
  if (settings_.embedding_size != spec.hidden_size) {
    project_in_.emplace(names, "model.decoder.project_in");
    project_out_.emplace(names, "model.decoder.project_out");
  }
  for (std::int64_t layer = 0; layer < spec.num_layers; ++layer) {
    layers_.emplace_back(spec, settings_, names, concat("model.decoder.layers.", layer));
  }
  if (settings_.has_final_norm()) {
    final_layer_norm_.emplace(names, "model.decoder.final_layer_norm", spec.layer_norm_epsilon);
  }
}

// The places that drop out: each layer has three.
AttentionShape Opt::shape(std::size_t layer, const nn::StepInput& input) const {
  return {.batch = context().size,
          .sequence = context().sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .scale = 1,  // the queries are scaled before the product
          .dropout = spec_.attention_dropout,
          .seed = input.seed_at(3 * layer + 1)};
}

// The attention gets its input by keyword, which DeepSpeed's hook behind its backward misses.
Value Opt::attention(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                     const nn::StepInput& input) const {
  const Layer& own = layers_[layer];
  return run_module(on, own.self_attn, [&] {
    const double scaling = 1 / std::sqrt(static_cast<double>(spec_.head_size()));
    const Value q = nn::scale(on, own.q_proj(on, x), scaling);
    const Value k = own.k_proj(on, x);
    const Value v = own.v_proj(on, x);
    return own.out_proj(on,
                        nn::attend(on, nn::SoftmaxType::fp32, shape(layer, input), q, k, v, mask));
  });
}

// One variable holds the latest result, as hidden_states does in OPTDecoderLayer.forward.
Value Opt::decoder_layer(Tape& on, std::size_t layer, const Value& x, const Value& mask,
                         const nn::StepInput& input) const {
  const Layer& own = layers_[layer];
  const auto body = [this, &own, layer, mask, input](Tape& in, const Value& x_in) {
    const bool norm_before = settings_.norm_before;
    Value hidden = norm_before ? own.self_attn_layer_norm(in, x_in) : x_in;
    hidden = attention(in, layer, hidden, mask, input);
    hidden = dropout_(in, hidden, input.seed_at(3 * layer + 2));
    hidden = nn::add(in, x_in, hidden);
    if (!norm_before) hidden = own.self_attn_layer_norm(in, hidden);
    const Value residual = hidden;
    if (norm_before) hidden = own.final_layer_norm(in, hidden);
    hidden = own.fc1(in, hidden);
    hidden = own.activation_fn(in, hidden);
    hidden = own.fc2(in, hidden);
    hidden = dropout_(in, hidden, input.seed_at(3 * layer + 3));
    hidden = nn::add(in, residual, hidden);
    return norm_before ? hidden : own.final_layer_norm(in, hidden);
  };
  return run_layer(on, own.module, layer, x, body);
}

// The embeddings and the mask are locals of OPTDecoder.forward.
Value Opt::decoder(Tape& on, const nn::StepInput& input) const {
  Value embedded = embed_tokens_.of_tokens(on, nn::tokens_of(input.tokens));
  const Value numbers = nn::positions(on, context().rows(), kFirstPosition);
  const Value places = embed_positions_(on, numbers);
  if (project_in_) embedded = (*project_in_)(on, embedded);
  Value hidden = nn::add(on, embedded, places);
  const Value mask = nn::attention_mask(on, shape(0, input));
  hidden = run_layers(on, layers_.size(), std::move(hidden),
                      [this, mask, input](Tape& in, std::size_t layer, const Value& x) {
                        return decoder_layer(in, layer, x, mask, input);
                      });
  if (final_layer_norm_) hidden = (*final_layer_norm_)(on, hidden);
  return project_out_ ? (*project_out_)(on, hidden) : hidden;
}

Value Opt::run(Tape& on, const nn::StepInput& input) {
  return run_module(on, root_, [&] {
    const auto run_decoder = [&] {
      return run_module(on, decoder_, [&] { return decoder(on, input); });
    };
    const Value hidden = body_ ? run_module(on, *body_, run_decoder) : run_decoder();
    return head_(on, hidden, input, loss_factor());
  });
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Opt>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::opt
