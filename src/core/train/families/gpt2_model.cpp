#include "core/train/families/gpt2_model.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/operations/add.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/fill.hpp"
#include "core/train/families/gpt2_block.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/residual_dropout.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::gpt2 {

namespace {

class Gpt2 final : public Model {
 public:
  Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device);

  void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) override;
  void backward(ModuleHooks& hooks, double factor) override;

 private:
  Buffer embed(ModuleHooks& hooks);
  void embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_wte);
  Buffer sum_of_tied(Buffer of_head, Buffer of_embedding) const;

  ModelSpec spec_;
  layers::Workspace work_;
  LinearLayers linear_;

  std::size_t root_;
  std::size_t transformer_;
  std::size_t wte_;
  std::size_t wpe_;
  std::size_t wte_weight_;  // tensors
  std::size_t wpe_weight_;
  std::size_t drop_;
  std::vector<Block> blocks_;
  layers::Norm ln_f_;
  layers::Head head_;

  // Of the micro-step that runs.
  std::uint64_t seed_ = 0;
  Tensor tokens_;
  Buffer embedding_mask_;
  Buffer ln_f_input_;
  Buffer ln_f_stats_;
};

Gpt2::Gpt2(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch, Device& device)
    : spec_(spec),
      work_(batch, device),
      linear_(batch.linear),
      root_(names.module("")),
      transformer_(names.module("transformer")),
      wte_(names.module("transformer.wte")),
      wpe_(names.module("transformer.wpe")),
      wte_weight_(names.tensor("transformer.wte.weight")),
      wpe_weight_(names.tensor("transformer.wpe.weight")),
      drop_(names.module("transformer.drop")),
      ln_f_(names, "transformer.ln_f", spec.hidden_size, spec.layer_norm_epsilon),
      head_{.module = names.module("lm_head"),
            .weight = wte_weight_,
            .size = spec.hidden_size,
            .vocab_size = spec.vocab_size,
            .is_tied = true} {
  blocks_.reserve(static_cast<std::size_t>(spec.num_layers));
  for (std::int64_t index = 0; index < spec.num_layers; ++index) {
    blocks_.emplace_back(spec_, names, index);
  }
}

// One kernel adds both tables up, so the first is released only after the second was fetched: the
// one place where hooks fire in another order than DeepSpeed's.
Buffer Gpt2::embed(ModuleHooks& hooks) {
  const std::int64_t h = spec_.hidden_size;
  hooks.fetch(wte_);
  hooks.fetch(wpe_);
  Buffer embedded = work_.activation(h);
  work_.device->run(
      Embedding{.tokens = tokens_,
                .sequence = work_.sequence_length,
                .wte = as_matrix(hooks.parameter(wte_weight_), spec_.vocab_size, h),
                .wpe = as_matrix(hooks.parameter(wpe_weight_), spec_.max_positions, h),
                .out = work_.matrix(embedded, h)});
  hooks.release(wte_);
  hooks.release(wpe_);
  return layers::inside(hooks, drop_, [&] {
    return layers::drop(work_, spec_.embedding_dropout, layers::seed_of(seed_, 0),
                        std::move(embedded), embedding_mask_);
  });
}

void Gpt2::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  tokens_ = tokens;
  seed_ = seed;
  hooks.fetch(root_);
  hooks.fetch(transformer_);
  Buffer hidden = embed(hooks);
  for (auto& block : blocks_) {
    hidden = block.forward(work_, hooks, std::move(hidden), seed);
    work_.device->tick();
  }
  ln_f_input_ = std::move(hidden);
  Buffer normed = ln_f_.forward(work_, hooks, ln_f_input_, ln_f_stats_);
  hooks.release(transformer_);
  head_.forward(work_, hooks, std::move(normed), tokens, loss);
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
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    d_hidden = block->backward(work_, hooks, std::move(d_hidden), seed_);
    work_.device->tick();
  }
  embed_backward(hooks, std::move(d_hidden), std::move(d_wte));
}

// The embedding's dense gradient is a tensor of its own, as in PyTorch, and the tied gradient is
// complete only here: last of all.
void Gpt2::embed_backward(ModuleHooks& hooks, Buffer d_embedded, Buffer d_wte) {
  const std::int64_t h = spec_.hidden_size;
  hooks.fetch(drop_);
  if (embedding_mask_) {
    d_embedded = layers::drop_backward(work_, spec_.embedding_dropout, d_embedded, embedding_mask_);
  }
  hooks.release(drop_);
  hooks.fetch(wpe_);
  Buffer d_wpe = work_.gradient(spec_.max_positions * h);
  Buffer dense = work_.gradient(spec_.vocab_size * h);
  work_.device->run(FillZero{d_wpe.tensor(work_.dtype)});
  work_.device->run(FillZero{dense.tensor(work_.dtype)});
  work_.device->run(
      EmbeddingBackward{.d_out = work_.matrix(d_embedded, h),
                        .tokens = tokens_,
                        .sequence = work_.sequence_length,
                        .d_wte = as_matrix(dense.tensor(work_.dtype), spec_.vocab_size, h),
                        .d_wpe = as_matrix(d_wpe.tensor(work_.dtype), spec_.max_positions, h)});
  hooks.gradient_ready(wpe_weight_, std::move(d_wpe));

  hooks.fetch(wte_);
  d_wte = sum_of_tied(std::move(d_wte), std::move(dense));  // the parts are gone before the hook
  hooks.gradient_ready(wte_weight_, std::move(d_wte));
}

// Autograd's sum of what is a view is a third tensor beside the two. It is held for that moment,
// but the sum is written over the first: the same bytes move.
Buffer Gpt2::sum_of_tied(Buffer of_head, Buffer of_embedding) const {
  Buffer third;
  if (linear_ == LinearLayers::torch) third = work_.gradient(spec_.vocab_size * spec_.hidden_size);
  work_.device->run(Add{of_head.tensor(work_.dtype), of_embedding.tensor(work_.dtype)});
  return of_head;
}

}  // namespace

std::unique_ptr<Model> make_model(const ModelSpec& spec, const ModelParameters& parameters,
                                  const MicroBatch& batch, Device& device) {
  return std::make_unique<Gpt2>(spec, ModelNames(parameters), batch, device);
}

}  // namespace dstune::gpt2
