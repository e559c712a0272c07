#include "core/train/layers/gpt2.hpp"

#include <utility>

#include "core/train/layers/block.hpp"
#include "core/train/layers/head.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/residual_dropout.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune {

namespace {

constexpr std::size_t kWte = 0;  // tensors and modules alike
constexpr std::size_t kWpe = 1;

}  // namespace

struct Gpt2::State {
  layers::Workspace work;
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
};

Gpt2::Gpt2(const ModelSpec& model, std::int64_t micro_batch, std::int64_t sequence_length,
           DType dtype, Device& device)
    : state_(std::make_unique<State>()) {
  state_->work = {model, micro_batch, sequence_length, dtype, &device};
  for (std::int64_t index = 0; index < model.num_layers; ++index) {
    state_->blocks.emplace_back().index = index;
  }
  const std::size_t after_blocks = 2 + 6 * static_cast<std::size_t>(model.num_layers);
  state_->ln_f.module = after_blocks;
  state_->head.module = after_blocks + 1;
}

Gpt2::~Gpt2() = default;

Buffer Gpt2::State::embed(ZeroEngine& engine) {
  const ModelSpec& model = work.model;
  const std::int64_t h = model.hidden_size;
  engine.fetch(kWte);
  engine.fetch(kWpe);
  Buffer embedded = work.activation(h);
  work.device->embedding(
      tokens, work.sequence_length, as_matrix(engine.parameter(kWte), model.vocab_size, h),
      as_matrix(engine.parameter(kWpe), model.max_positions, h), work.matrix(embedded, h));
  engine.release(kWte);
  engine.release(kWpe);
  return layers::drop(work, model.embedding_dropout, layers::seed_of(seed, 0), std::move(embedded),
                      embedding_mask);
}

double Gpt2::forward(ZeroEngine& engine, const std::int64_t* tokens, std::uint64_t seed) {
  State& state = *state_;
  state.tokens = tokens;
  state.seed = seed;
  Buffer hidden = state.embed(engine);
  for (auto& block : state.blocks) {
    hidden = block.forward(state.work, engine, std::move(hidden), seed);
    state.work.device->tick();
  }
  state.ln_f_input = std::move(hidden);
  Buffer normed = state.ln_f.forward(state.work, engine, state.ln_f_input, state.ln_f_stats);
  return state.head.forward(state.work, engine, std::move(normed), tokens);
}

void Gpt2::backward(ZeroEngine& engine, double factor) {
  State& state = *state_;
  const layers::Workspace& work = state.work;
  Buffer d_wte;
  Buffer d_hidden = state.head.backward(work, engine, factor, d_wte);
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
  if (embedding_mask) {
    d_embedded = layers::drop_backward(work, model.embedding_dropout, d_embedded, embedding_mask);
  }
  engine.fetch(kWpe);
  Buffer d_wpe = work.gradient(model.max_positions * h);
  Buffer dense = work.gradient(model.vocab_size * h);
  work.device->fill_zero(d_wpe.tensor(work.dtype));
  work.device->fill_zero(dense.tensor(work.dtype));
  work.device->embedding_backward(work.matrix(d_embedded, h), tokens, work.sequence_length,
                                  as_matrix(dense.tensor(work.dtype), model.vocab_size, h),
                                  as_matrix(d_wpe.tensor(work.dtype), model.max_positions, h));
  engine.gradient_ready(kWpe, std::move(d_wpe));
  engine.release(kWpe);

  engine.fetch(kWte);
  work.device->add(d_wte.tensor(work.dtype), dense.tensor(work.dtype));
  dense.reset();
  engine.gradient_ready(kWte, std::move(d_wte));
  engine.release(kWte);
}

}  // namespace dstune
