#include "core/train/layers/gpt2.hpp"

#include <utility>

#include "core/model/module_places.hpp"
#include "core/train/layers/block.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/residual_dropout.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune {

namespace {

constexpr std::size_t kWte = 0;  // tensors
constexpr std::size_t kWpe = 1;

}  // namespace

struct Gpt2::State {
  layers::Workspace work;
  LinearLayers linear = LinearLayers::torch;
  std::uint64_t seed = 0;
  const std::int64_t* tokens = nullptr;
  Buffer embedding_mask;
  std::vector<layers::Block> blocks;
  layers::Norm ln_f;
  Buffer ln_f_input;
  Buffer ln_f_stats;
  layers::Head head;

  Buffer embed(ZeroEngine& engine);
  void embed_backward(ZeroEngine& engine, Buffer d_embedded, Buffer d_wte);
  Buffer sum_of_tied(Buffer of_head, Buffer of_embedding) const;
};

Gpt2::Gpt2(const ModelSpec& model, std::int64_t micro_batch, std::int64_t sequence_length,
           DType dtype, Device& device, LinearLayers linear)
    : state_(std::make_unique<State>()) {
  state_->work = {model, micro_batch, sequence_length, dtype, &device};
  state_->linear = linear;
  for (std::int64_t index = 0; index < model.num_layers; ++index) {
    state_->blocks.emplace_back().index = index;
  }
  state_->ln_f.module = module_places::ln_f(model.num_layers);
  state_->ln_f.weight = 2 + 12 * static_cast<std::size_t>(model.num_layers);
  state_->head.module = module_places::lm_head(model.num_layers);
}

Gpt2::~Gpt2() = default;

// One kernel adds both tables up, so the first is released only after the second was fetched: the
// one place where hooks fire in another order than DeepSpeed's.
Buffer Gpt2::State::embed(ZeroEngine& engine) {
  const ModelSpec& model = work.model;
  const std::int64_t h = model.hidden_size;
  engine.fetch(module_places::kWte);
  engine.fetch(module_places::kWpe);
  Buffer embedded = work.activation(h);
  work.device->embedding(
      tokens, work.sequence_length, as_matrix(engine.parameter(kWte), model.vocab_size, h),
      as_matrix(engine.parameter(kWpe), model.max_positions, h), work.matrix(embedded, h));
  engine.release(module_places::kWte);
  engine.release(module_places::kWpe);
  return layers::inside(engine, module_places::kDrop, [&] {
    return layers::drop(work, model.embedding_dropout, layers::seed_of(seed, 0),
                        std::move(embedded), embedding_mask);
  });
}

void Gpt2::forward(ZeroEngine& engine, const std::int64_t* tokens, std::uint64_t seed,
                   Tensor loss) {
  State& state = *state_;
  state.tokens = tokens;
  state.seed = seed;
  engine.fetch(module_places::kRoot);
  engine.fetch(module_places::kTransformer);
  Buffer hidden = state.embed(engine);
  for (auto& block : state.blocks) {
    hidden = block.forward(state.work, engine, std::move(hidden), seed);
    state.work.device->tick();
  }
  state.ln_f_input = std::move(hidden);
  Buffer normed = state.ln_f.forward(state.work, engine, state.ln_f_input, state.ln_f_stats);
  engine.release(module_places::kTransformer);
  state.head.forward(state.work, engine, std::move(normed), tokens, loss);
  engine.release(module_places::kRoot);
}

// Autograd never comes back to the inputs of the root, the transformer and the embeddings, which
// are token numbers: their backward is never over, and nothing releases them.
void Gpt2::backward(ZeroEngine& engine, double factor) {
  State& state = *state_;
  const layers::Workspace& work = state.work;
  engine.fetch(module_places::kRoot);
  Buffer d_wte;
  Buffer d_hidden = state.head.backward(work, engine, factor, d_wte);
  engine.fetch(module_places::kTransformer);
  d_hidden = state.ln_f.backward(work, engine, d_hidden, state.ln_f_input, state.ln_f_stats);
  state.ln_f_input.reset();
  state.ln_f_stats.reset();
  for (auto block = state.blocks.rbegin(); block != state.blocks.rend(); ++block) {
    d_hidden = block->backward(work, engine, std::move(d_hidden), state.seed);
    work.device->tick();
  }
  state.embed_backward(engine, std::move(d_hidden), std::move(d_wte));
}

// The embedding's dense gradient is a tensor of its own, as in PyTorch, and the tied gradient is
// complete only here: last of all.
void Gpt2::State::embed_backward(ZeroEngine& engine, Buffer d_embedded, Buffer d_wte) {
  const ModelSpec& model = work.model;
  const std::int64_t h = model.hidden_size;
  engine.fetch(module_places::kDrop);
  if (embedding_mask) {
    d_embedded = layers::drop_backward(work, model.embedding_dropout, d_embedded, embedding_mask);
  }
  engine.release(module_places::kDrop);
  engine.fetch(module_places::kWpe);
  Buffer d_wpe = work.gradient(model.max_positions * h);
  Buffer dense = work.gradient(model.vocab_size * h);
  work.device->fill_zero(d_wpe.tensor(work.dtype));
  work.device->fill_zero(dense.tensor(work.dtype));
  work.device->embedding_backward(work.matrix(d_embedded, h), tokens, work.sequence_length,
                                  as_matrix(dense.tensor(work.dtype), model.vocab_size, h),
                                  as_matrix(d_wpe.tensor(work.dtype), model.max_positions, h));
  engine.gradient_ready(kWpe, std::move(d_wpe));

  engine.fetch(module_places::kWte);
  d_wte = sum_of_tied(std::move(d_wte), std::move(dense));  // the parts are gone before the hook
  engine.gradient_ready(kWte, std::move(d_wte));
}

// Autograd's sum of what is a view is a third tensor beside the two. It is held for that moment,
// but the sum is written over the first: the same bytes move.
Buffer Gpt2::State::sum_of_tied(Buffer of_head, Buffer of_embedding) const {
  Buffer third;
  if (linear == LinearLayers::torch)
    third = work.gradient(work.model.vocab_size * work.model.hidden_size);
  work.device->add(of_head.tensor(work.dtype), of_embedding.tensor(work.dtype));
  return of_head;
}

}  // namespace dstune
