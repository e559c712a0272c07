#include "core/train/families/gpt_neox/gpt_neox_model.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "core/train/families/gpt_neox/gpt_neox_layer.hpp"
#include "core/train/layers/decoder_head.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt_neox {

namespace {

class GptNeox final : public Model {
 public:
  GptNeox(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override {
    work_.take(lengths);
    rotary_.arrange(work_);
  }
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  void embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_tied);
  auto layer_forward() {
    return [this](std::size_t layer, ModuleHooks& hooks, Buffer x) {
      return layers_[layer].forward(work_, hooks, rotary_, std::move(x), mask_, seed_);
    };
  }

  NeoxSettings settings_;
  layers::Workspace work_;
  layers::Rotary rotary_;

  std::size_t root_;
  std::size_t body_;
  std::size_t rotary_module_;
  layers::EmbeddingTable embed_in_;
  layers::DropoutLayer dropout_;
  layers::LayerStack<NeoxLayer> layers_;
  layers::Norm norm_;
  layers::DecoderHead head_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Tensor tokens_;
  Buffer mask_;
  Buffer norm_input_;
  Buffer norm_stats_;
};

GptNeox::GptNeox(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
                 Device& device)
    : settings_(settings_of(spec)),
      work_(batch, device),
      rotary_(work_, frequencies(spec, settings_)),
      root_(names.module("")),
      body_(names.module("gpt_neox")),
      rotary_module_(names.module("gpt_neox.rotary_emb")),
      embed_in_(names, "gpt_neox.embed_in", spec.vocab_size, spec.hidden_size),
      dropout_{.module = names.module("gpt_neox.emb_dropout"),
               .probability = spec.embedding_dropout},
      layers_(
          work_, names, spec.num_layers,
          [spec, settings = settings_](const ModelNames& all, std::int64_t index) {
            return NeoxLayer(spec, settings, all, index);
          },
          names.frozen_layers("gpt_neox.layers.", spec.num_layers)),
      norm_(names, "gpt_neox.final_layer_norm", spec.hidden_size, spec.layer_norm_epsilon),
      head_(spec, names, spec.hidden_size,
            settings_.tied ? std::optional(embed_in_.weight) : std::nullopt) {}

void GptNeox::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  tokens_ = tokens;
  seed_ = work_.seed = seed;
  hooks.fetch(root_);
  hooks.fetch(body_);
  Buffer hidden = dropout_.forward(work_, hooks, layers::seed_of(seed_, 0),
                                   embed_in_.forward(work_, hooks, tokens_));
  hooks.fetch(rotary_module_);
  hooks.release(rotary_module_);
  mask_ = layers::attention_mask(work_, layers_.front().attention_shape(work_, seed));
  norm_input_ = layers_.forward(hooks, std::move(hidden), layer_forward());
  Buffer normed = norm_.forward(work_, hooks, norm_input_, norm_stats_);
  if (!layers_.recomputes()) mask_.reset();
  hooks.release(body_);
  head_.forward(work_, hooks, std::move(normed), tokens, seed, loss);
  hooks.release(root_);
}

// Autograd never comes back to the inputs of the root, the body, the angles and the embedding:
// nothing releases them.
void GptNeox::backward(ModuleHooks& hooks, double factor) {
  hooks.fetch(root_);
  Buffer d_tied;
  Buffer d_hidden = head_.backward(work_, hooks, factor, d_tied);
  hooks.fetch(body_);
  d_hidden = norm_.backward(work_, hooks, d_hidden, norm_input_, norm_stats_);
  norm_input_.reset();
  norm_stats_.reset();
  const auto layer_backward = [this](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
    return layers_[layer].backward(work_, inner, rotary_, std::move(d_out), seed_);
  };
  d_hidden = layers_.backward(hooks, std::move(d_hidden), layer_forward(), layer_backward);
  mask_.reset();
  embed_backward(hooks, std::move(d_hidden), std::move(d_tied));
}

void GptNeox::embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_tied) {
  if (Buffer dropped = dropout_.backward(work_, hooks, d_embedded)) d_embedded = std::move(dropped);
  if (!embed_in_.is_trainable) return;
  hooks.fetch(embed_in_.module);
  Buffer d_table = embed_in_.gradient(work_, d_embedded, tokens_);
  d_embedded.reset();
  if (d_tied) d_table = layers::sum_of_tied(work_, std::move(d_tied), std::move(d_table));
  hooks.gradient_ready(embed_in_.weight, std::move(d_table));
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<GptNeox>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::gpt_neox
