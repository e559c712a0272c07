#include "core/train/families/opt/opt_model.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/train/families/opt/opt_layer.hpp"
#include "core/train/layers/decoder_head.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::opt {

namespace {

using layers::Linear;

std::optional<Linear> projection(const ModelSpec& spec, const OptSettings& settings,
                                 const ModelNames& names, bool out) {
  const std::int64_t h = spec.hidden_size;
  const std::int64_t e = settings.embedding_size;
  if (e == h) return std::nullopt;
  const char* name = out ? "model.decoder.project_out" : "model.decoder.project_in";
  return Linear(names, name, out ? h : e, out ? e : h, layers::WeightOrder::out_in, false);
}

std::optional<layers::Norm> final_norm(const ModelSpec& spec, const OptSettings& settings,
                                       const ModelNames& names) {
  if (!settings.has_final_norm()) return std::nullopt;
  return layers::Norm(names, "model.decoder.final_layer_norm", spec.hidden_size,
                      spec.layer_norm_epsilon, settings.norm_parameters);
}

class Opt final : public Model {
 public:
  Opt(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override { work_.take(lengths); }
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  /// Locals of OPTDecoder.forward, which live until it returns.
  struct Embedded {
    Buffer tokens;     // (M, h), or projected to that
    Buffer positions;  // (M, h)
  };
  Embedded look_up(ModuleHooks& hooks);
  Buffer sum_of(const Embedded& rows) const;
  Buffer finish(ModuleHooks& hooks, Buffer hidden);
  Buffer finish_backward(ModuleHooks& hooks, Buffer d_hidden);
  void embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_tied);
  Tensor positions() const { return positions_.tensor(DType::int64); }
  auto layer_forward() {
    return [this](std::size_t layer, ModuleHooks& hooks, Buffer x) {
      return layers_[layer].forward(work_, hooks, std::move(x), mask_, seed_);
    };
  }

  std::int64_t hidden_size_;
  layers::Workspace work_;

  std::size_t root_;
  std::optional<std::size_t> body_;  ///< where its forward runs
  std::size_t decoder_;
  layers::EmbeddingTable embed_tokens_;
  layers::EmbeddingTable embed_positions_;
  std::optional<Linear> project_out_;
  std::optional<Linear> project_in_;
  std::optional<layers::Norm> norm_;
  layers::LayerStack<OptLayer> layers_;
  layers::DecoderHead head_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Tensor tokens_;
  Buffer positions_;         // int64 (M)
  Buffer project_in_input_;  // (M, e)
  Buffer mask_;
  Buffer norm_input_;
  Buffer norm_stats_;
  Buffer project_out_input_;  // (M, h)
};

Opt::Opt(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : hidden_size_(spec.hidden_size),
      work_(batch, device),
      root_(names.module("")),
      decoder_(names.module("model.decoder")),
      embed_tokens_(names, "model.decoder.embed_tokens", spec.vocab_size,
                    settings_of(spec).embedding_size),
      embed_positions_(names, "model.decoder.embed_positions", spec.max_positions + kFirstPosition,
                       spec.hidden_size),
      project_out_(projection(spec, settings_of(spec), names, true)),
      project_in_(projection(spec, settings_of(spec), names, false)),
      norm_(final_norm(spec, settings_of(spec), names)),
      layers_(
          work_, names, spec.num_layers,
          [spec, settings = settings_of(spec)](const ModelNames& all, std::int64_t index) {
            return OptLayer(spec, settings, all, index);
          },
          names.frozen_layers("model.decoder.layers.", spec.num_layers)),
      head_(spec, names, settings_of(spec).embedding_size,
            settings_of(spec).tied ? std::optional(embed_tokens_.weight) : std::nullopt) {
  if (spec.task == Task::sequence_classification) body_ = names.module("model");
}

Opt::Embedded Opt::look_up(ModuleHooks& hooks) {
  Embedded rows;
  rows.tokens = embed_tokens_.forward(work_, hooks, tokens_);
  positions_ = make_buffer(*work_.device, MemoryCategory::activations, work_.rows(), DType::int64);
  layers::fill_positions(work_, positions(), kFirstPosition);
  rows.positions = embed_positions_.forward(work_, hooks, positions());
  if (!project_in_) return rows;
  project_in_input_ = std::move(rows.tokens);
  rows.tokens = project_in_->forward(work_, hooks, project_in_input_);
  return rows;
}

Buffer Opt::sum_of(const Embedded& rows) const {
  Buffer sum = work_.activation(hidden_size_);
  work_.device->run(AddBroadcast{.a = work_.matrix(rows.tokens, hidden_size_),
                                 .b = work_.matrix(rows.positions, hidden_size_),
                                 .out = work_.matrix(sum, hidden_size_)});
  return sum;
}

void Opt::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  tokens_ = tokens;
  seed_ = work_.seed = seed;
  hooks.fetch(root_);
  if (body_) hooks.fetch(*body_);
  hooks.fetch(decoder_);
  Embedded rows = look_up(hooks);
  Buffer hidden = sum_of(rows);
  mask_ = layers::attention_mask(work_, layers_.front().attention_shape(work_, seed));
  hidden = finish(hooks, layers_.forward(hooks, std::move(hidden), layer_forward()));
  rows = {};
  layers_.front().forget_input(work_);
  if (!layers_.recomputes()) mask_.reset();
  hooks.release(decoder_);
  if (body_) hooks.release(*body_);
  head_.forward(work_, hooks, std::move(hidden), tokens, seed, loss);
  hooks.release(root_);
}

Buffer Opt::finish(ModuleHooks& hooks, Buffer hidden) {
  if (norm_) {
    norm_input_ = std::move(hidden);
    hidden = norm_->forward(work_, hooks, norm_input_, norm_stats_);
  }
  if (!project_out_) return hidden;
  project_out_input_ = std::move(hidden);
  return project_out_->forward(work_, hooks, project_out_input_);
}

// Autograd never comes back to the inputs of the root, the decoder and the embeddings, which are
// token numbers: nothing releases them.
void Opt::backward(ModuleHooks& hooks, double factor) {
  hooks.fetch(root_);
  Buffer d_tied;
  Buffer d_hidden = head_.backward(work_, hooks, factor, d_tied);
  if (body_) hooks.fetch(*body_);
  hooks.fetch(decoder_);
  d_hidden = finish_backward(hooks, std::move(d_hidden));
  const auto layer_backward = [this](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
    return layers_[layer].backward(work_, inner, std::move(d_out), seed_);
  };
  d_hidden = layers_.backward(hooks, std::move(d_hidden), layer_forward(), layer_backward);
  mask_.reset();
  embed_backward(hooks, std::move(d_hidden), std::move(d_tied));
}

Buffer Opt::finish_backward(ModuleHooks& hooks, Buffer d_hidden) {
  if (project_out_) {
    d_hidden = project_out_->backward(work_, hooks, d_hidden, project_out_input_);
    project_out_input_.reset();
  }
  if (norm_) {
    d_hidden = norm_->backward(work_, hooks, d_hidden, norm_input_, norm_stats_);
    norm_input_.reset();
    norm_stats_.reset();
  }
  return d_hidden;
}

// In the order of autograd, the reverse of forward's; the tied gradient is complete last of all.
void Opt::embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_tied) {
  Buffer d_projected;
  if (project_in_) {
    d_projected = project_in_->backward(work_, hooks, d_embedded, project_in_input_);
    project_in_input_.reset();
  }
  if (embed_positions_.is_trainable) hooks.fetch(embed_positions_.module);
  Buffer d_positions = embed_positions_.gradient(work_, d_embedded, positions());
  positions_.reset();
  hooks.gradient_ready(embed_positions_.weight, std::move(d_positions));

  if (embed_tokens_.is_trainable) hooks.fetch(embed_tokens_.module);
  Buffer d_table = embed_tokens_.gradient(work_, d_projected ? d_projected : d_embedded, tokens_);
  d_projected.reset();
  d_embedded.reset();
  if (d_tied) d_table = layers::sum_of_tied(work_, std::move(d_tied), std::move(d_table));
  hooks.gradient_ready(embed_tokens_.weight, std::move(d_table));
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Opt>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::opt
