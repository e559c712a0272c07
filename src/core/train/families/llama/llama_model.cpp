#include "core/train/families/llama/llama_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/device/operations/scale.hpp"
#include "core/train/families/llama/llama_block.hpp"
#include "core/train/families/moe/moe_balance.hpp"
#include "core/train/layers/decoder_head.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/rms_norm_layer.hpp"
#include "core/train/layers/rotary.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

namespace {

// As a number of the model's type.
double rounded(double value, DType dtype) {
  const auto number = static_cast<float>(value);
  if (dtype == DType::bf16) return to_float(from_float<BFloat16>(number));
  if (dtype == DType::fp16) return to_float(from_float<Float16>(number));
  return number;
}

class Llama final : public Model {
 public:
  Llama(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
        const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override;
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  Buffer decode(ModuleHooks& hooks, Buffer hidden);
  /// Of layers without and with a window; empty where the attention takes none, or its own.
  struct Masks {
    Buffer of_all;
    Buffer of_windows;
    Buffer booleans;

    const Buffer& of(bool windowed) const { return windowed ? of_windows : of_all; }
  };
  Masks make_masks() const;
  void scale(const Buffer& embedded) const;
  const layers::Rotary& rotary_of(std::size_t layer) const {
    return windowed_rotary_ && windowed_[layer] ? *windowed_rotary_ : rotary_;
  }
  int rotaries() const;
  void embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_of_head);
  /// What runs again in backward is not counted twice.
  void count_routes(std::size_t layer) {
    MoeBlock* const experts = blocks_[layer].experts();
    if (balance_ && experts != nullptr) balance_->take(*experts, work_, blocks_.forgets(layer));
  }
  std::vector<MoeBlock*> moe_blocks();
  auto block_forward() {
    return [this](std::size_t layer, ModuleHooks& hooks, Buffer x) {
      return blocks_[layer].forward(work_, hooks, rotary_of(layer), masks_.of(windowed_[layer]),
                                    std::move(x), seed_);
    };
  }

  layers::Workspace work_;
  std::int64_t window_;  ///< of the layers that have one

  std::size_t root_;
  std::size_t body_;
  layers::EmbeddingTable embedding_;
  double embedding_scale_;
  std::size_t rotary_module_;
  layers::Rotary rotary_;
  std::optional<layers::Rotary> windowed_rotary_;
  std::vector<bool> windowed_;  // by layer
  layers::LayerStack<LlamaBlock> blocks_;
  layers::RmsNormLayer norm_;
  layers::DecoderHead head_;
  std::optional<RouterBalance> balance_;
  std::vector<std::size_t> moe_layers_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Tensor tokens_;
  Masks masks_;
  Buffer norm_input_;
};

layers::Workspace workspace_of(const LlamaSettings& settings, const MicroBatch& batch,
                               Device& device) {
  layers::Workspace work(batch, device);
  if (settings.never_sdpa && work.attention == AttentionKind::sdpa) {
    work.attention = AttentionKind::eager;
  }
  return work;
}

Llama::Llama(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
             const MicroBatch& batch, Device& device)
    : work_(workspace_of(settings, batch, device)),
      window_(settings.window),
      root_(names.module("")),
      body_(names.module("model")),
      embedding_(names, "model.embed_tokens", spec.vocab_size, spec.hidden_size),
      embedding_scale_(settings.is_gemma
                           ? rounded(std::sqrt(static_cast<double>(spec.hidden_size)), batch.dtype)
                           : 1),
      rotary_module_(names.module("model.rotary_emb")),
      rotary_(work_, frequencies_of(spec, settings.rope, batch.sequence_length)),
      windowed_(settings.windowed),
      blocks_(
          work_, names, spec.num_layers,
          [spec, settings](const ModelNames& all, std::int64_t index) {
            return LlamaBlock(spec, settings, all, index);
          },
          names.frozen_layers("model.layers.", spec.num_layers)),
      norm_(names, "model.norm", spec.hidden_size, spec.layer_norm_epsilon, 1,
            settings.is_gemma ? 1 : 0),
      head_(spec, names, spec.hidden_size,
            settings.tied ? std::optional(embedding_.weight) : std::nullopt, settings.logit_cap) {
  if (!settings.windowed_rope.empty()) {
    windowed_rotary_.emplace(work_,
                             frequencies_of(spec, settings.windowed_rope, batch.sequence_length));
  }
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (blocks_[layer].experts() != nullptr) moe_layers_.push_back(layer);
  }
  const bool has_loss = spec.task == Task::causal_lm && settings.experts.balance > 0;
  if (has_loss && !moe_layers_.empty()) balance_.emplace(settings.experts);
}

void Llama::set_lengths(const RowLengths& lengths) {
  if (balance_ && (lengths.is_packed || !lengths.sequences.empty())) {
    throw std::invalid_argument("the loss of routers takes no padding");
  }
  work_.take(lengths);
  rotary_.arrange(work_);
  if (windowed_rotary_) windowed_rotary_->arrange(work_);
}

// The masks and the embeddings are locals of LlamaModel.forward, which live until it
// returns.
Buffer Llama::decode(ModuleHooks& hooks, Buffer hidden) {
  masks_ = make_masks();
  norm_input_ = blocks_.forward(hooks, std::move(hidden),
                                [&](std::size_t layer, ModuleHooks& inner, Buffer x) {
                                  Buffer out = block_forward()(layer, inner, std::move(x));
                                  count_routes(layer);
                                  return out;
                                });
  Buffer normed = norm_.forward(work_, hooks, norm_input_);
  if (!layers::RmsNormLayer::keeps_input(work_)) norm_input_.reset();
  blocks_.front().forget_input(work_);
  if (!blocks_.recomputes()) masks_ = {};
  return normed;
}

std::vector<MoeBlock*> Llama::moe_blocks() {
  std::vector<MoeBlock*> blocks;
  for (const std::size_t layer : moe_layers_) {
    blocks.push_back(blocks_.has_backward(layer) ? blocks_[layer].experts() : nullptr);
  }
  return blocks;
}

// Those of a window are made by torch of one of true and false, for all sequences of the batch.
Llama::Masks Llama::make_masks() const {
  Masks masks;
  const auto make = [&](bool windowed, Buffer& mask) {
    const auto layer = std::find(windowed_.begin(), windowed_.end(), windowed);
    if (layer == windowed_.end()) return;
    const LlamaBlock& block = blocks_[static_cast<std::size_t>(layer - windowed_.begin())];
    mask = layers::attention_mask(work_, block.attention_shape(work_, seed_));
  };
  make(false, masks.of_all);
  make(true, masks.of_windows);
  const std::int64_t s = work_.sequence_length;
  const bool has_window = window_ > 0 && window_ <= s && !masks.of_windows;
  const std::int64_t sequences = work_.is_padded() ? work_.micro_batch : 1;
  if (work_.attention == AttentionKind::sdpa && (has_window || work_.is_padded())) {
    masks.booleans = {*work_.device, MemoryCategory::activations,
                      static_cast<Bytes>(sequences * s * s)};
  }
  return masks;
}

void Llama::scale(const Buffer& embedded) const {
  if (embedding_scale_ != 1) {
    work_.device->run(Scale{embedded.tensor(work_.dtype), embedding_scale_});
  }
}

// Its module runs once for each kind of layer that there is.
int Llama::rotaries() const {
  if (!windowed_rotary_) return 1;
  const auto with_window = std::count(windowed_.begin(), windowed_.end(), true);
  return with_window > 0 && with_window < std::ssize(windowed_) ? 2 : 1;
}

void Llama::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  tokens_ = tokens;
  seed_ = work_.seed = seed;
  hooks.fetch(root_);
  hooks.fetch(body_);
  Buffer embedded = embedding_.forward(work_, hooks, tokens_);
  scale(embedded);
  for (int kind = 0; kind < rotaries(); ++kind) {
    hooks.fetch(rotary_module_);
    hooks.release(rotary_module_);
  }
  Buffer normed = decode(hooks, std::move(embedded));
  hooks.release(body_);
  head_.forward(work_, hooks, std::move(normed), tokens, seed, loss);
  if (balance_) balance_->forward(work_, loss);
  hooks.release(root_);
}

// Autograd never comes back to the inputs of the root, the body and the embedding, which are token
// numbers: their backward is never over, and nothing releases them.
void Llama::backward(ModuleHooks& hooks, double factor) {
  hooks.fetch(root_);
  if (balance_) balance_->backward(work_, moe_blocks(), factor);
  Buffer d_of_head;
  Buffer d_hidden = head_.backward(work_, hooks, factor, d_of_head);
  hooks.fetch(body_);
  d_hidden = norm_.backward(work_, hooks, std::move(d_hidden), norm_input_);
  norm_input_.reset();
  const auto block_backward = [this](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
    return blocks_[layer].backward(work_, inner, rotary_of(layer), std::move(d_out), seed_);
  };
  d_hidden = blocks_.backward(hooks, std::move(d_hidden), block_forward(), block_backward);
  masks_ = {};
  embed_backward(hooks, std::move(d_hidden), std::move(d_of_head));
}

void Llama::embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_of_head) {
  if (!embedding_.is_trainable) return;
  hooks.fetch(embedding_.module);
  scale(d_embedded);
  Buffer dense = embedding_.gradient(work_, d_embedded, tokens_);
  d_embedded.reset();
  if (d_of_head) dense = layers::sum_of_tied(work_, std::move(d_of_head), std::move(dense));
  hooks.gradient_ready(embedding_.weight, std::move(dense));
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Llama>(spec, settings_of(spec), ModelNames(parameters), batch, device);
}

}  // namespace dstune::llama
