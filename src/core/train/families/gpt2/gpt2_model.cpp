#include "core/train/families/gpt2/gpt2_model.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/train/families/gpt2/gpt2_block.hpp"
#include "core/train/layers/decoder_head.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/tied_gradient.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt2 {

namespace {

class Gpt2 final : public Model {
 public:
  Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void set_lengths(const RowLengths& lengths) override { work_.take(lengths); }
  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  /// What is looked up, before it is added up.
  struct Embedded {
    Buffer tokens;     // (M, h)
    Buffer positions;  // (sequence_length, h)
  };
  Embedded look_up(ModuleHooks& hooks);
  Buffer embed(ModuleHooks& hooks, const Embedded& rows);
  Tensor positions() const { return positions_.tensor(DType::int64); }
  Matrix position_rows(const Buffer& buffer) const {
    return as_matrix(buffer.tensor(work_.dtype), work_.sequence_length, spec_.hidden_size);
  }
  Buffer positions_gradient(const Buffer& d_embedded) const;
  void embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_wte);
  auto block_forward() {
    return [this](std::size_t layer, ModuleHooks& hooks, Buffer x) {
      return blocks_[layer].forward(work_, hooks, std::move(x), mask_, seed_);
    };
  }

  ModelSpec spec_;
  layers::Workspace work_;

  std::size_t root_;
  std::size_t transformer_;
  layers::EmbeddingTable wte_;
  layers::EmbeddingTable wpe_;
  layers::DropoutLayer drop_;
  layers::LayerStack<Block> blocks_;
  layers::Norm ln_f_;
  layers::DecoderHead head_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Tensor tokens_;
  Buffer positions_;  // int64 (sequence_length)
  Buffer mask_;
  Buffer ln_f_input_;
  Buffer ln_f_stats_;
};

Gpt2::Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : spec_(spec),
      work_(batch, device),
      root_(names.module("")),
      transformer_(names.module("transformer")),
      wte_(names, "transformer.wte", spec.vocab_size, spec.hidden_size),
      wpe_(names, "transformer.wpe", spec.max_positions, spec.hidden_size),
      drop_{.module = names.module("transformer.drop"), .probability = spec.embedding_dropout},
      blocks_(
          work_, names, spec.num_layers,
          [this, settings = settings_of(spec)](const ModelNames& all, std::int64_t index) {
            return Block(spec_, settings, all, index);
          },
          names.frozen_layers("transformer.h.", spec.num_layers)),
      ln_f_(names, "transformer.ln_f", spec.hidden_size, spec.layer_norm_epsilon),
      head_(spec, names, spec.hidden_size,
            settings_of(spec).tied ? std::optional(wte_.weight) : std::nullopt) {}

Gpt2::Embedded Gpt2::look_up(ModuleHooks& hooks) {
  Embedded rows;
  rows.tokens = wte_.forward(work_, hooks, tokens_);
  positions_ =
      make_buffer(*work_.device, MemoryCategory::activations, work_.sequence_length, DType::int64);
  layers::fill_positions(work_, positions(), 0);
  rows.positions = wpe_.forward(work_, hooks, positions());
  return rows;
}

Buffer Gpt2::embed(ModuleHooks& hooks, const Embedded& rows) {
  const std::int64_t h = spec_.hidden_size;
  Buffer sum = work_.activation(h);
  work_.device->run(AddBroadcast{.a = work_.matrix(rows.tokens, h),
                                 .b = position_rows(rows.positions),
                                 .out = work_.matrix(sum, h)});
  return drop_.forward(work_, hooks, layers::seed_of(seed_, 0), std::move(sum));
}

void Gpt2::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  tokens_ = tokens;
  seed_ = work_.seed = seed;
  hooks.fetch(root_);
  hooks.fetch(transformer_);
  // Both parts of the sum are locals of GPT2Model.forward, which live until it returns.
  Embedded rows = look_up(hooks);
  Buffer hidden = embed(hooks, rows);
  mask_ = layers::attention_mask(work_, blocks_.front().attention_shape(work_, seed));
  ln_f_input_ = blocks_.forward(hooks, std::move(hidden), block_forward());
  Buffer normed = ln_f_.forward(work_, hooks, ln_f_input_, ln_f_stats_);
  rows = {};
  if (!blocks_.recomputes()) mask_.reset();
  hooks.release(transformer_);
  head_.forward(work_, hooks, std::move(normed), tokens, seed, loss);
  hooks.release(root_);
}

// Autograd never comes back to the inputs of the root, the transformer and the embeddings, which
// are token numbers: their backward is never over, and nothing releases them.
void Gpt2::backward(ModuleHooks& hooks, double factor) {
  hooks.fetch(root_);
  Buffer d_wte;
  Buffer d_hidden = head_.backward(work_, hooks, factor, d_wte);
  hooks.fetch(transformer_);
  d_hidden = ln_f_.backward(work_, hooks, d_hidden, ln_f_input_, ln_f_stats_);
  ln_f_input_.reset();
  ln_f_stats_.reset();
  const auto block_backward = [this](std::size_t layer, ModuleHooks& inner, Buffer d_out) {
    return blocks_[layer].backward(work_, inner, std::move(d_out), seed_);
  };
  d_hidden = blocks_.backward(hooks, std::move(d_hidden), block_forward(), block_backward);
  mask_.reset();
  embed_backward(hooks, std::move(d_hidden), std::move(d_wte));
}

// In the order of autograd, the reverse of forward's; the tied gradient is complete last of all.
void Gpt2::embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_wte) {
  if (Buffer dropped = drop_.backward(work_, hooks, d_embedded)) d_embedded = std::move(dropped);

  Buffer d_positions = positions_gradient(d_embedded);
  if (wpe_.is_trainable) hooks.fetch(wpe_.module);
  Buffer d_wpe = wpe_.gradient(work_, d_positions ? d_positions : d_embedded, positions());
  d_positions.reset();
  positions_.reset();
  hooks.gradient_ready(wpe_.weight, std::move(d_wpe));

  if (wte_.is_trainable) hooks.fetch(wte_.module);
  Buffer dense = wte_.gradient(work_, d_embedded, tokens_);
  d_embedded.reset();
  // The parts are gone before the hook.
  if (d_wte) dense = layers::sum_of_tied(work_, std::move(d_wte), std::move(dense));
  hooks.gradient_ready(wte_.weight, std::move(dense));
}

// Empty where there is nothing to sum up: autograd hands the same tensor on.
Buffer Gpt2::positions_gradient(const Buffer& d_embedded) const {
  if (work_.micro_batch == 1) return {};
  const std::int64_t h = spec_.hidden_size;
  Buffer sum = make_buffer(*work_.device, MemoryCategory::activations, work_.sequence_length * h,
                           work_.dtype);
  work_.device->run(AddBroadcastBackward{work_.matrix(d_embedded, h), position_rows(sum)});
  return sum;
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Gpt2>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::gpt2
