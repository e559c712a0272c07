#include "core/train/families/t5/t5_stack.hpp"

#include <utility>

#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

// Where chance has a part outside of blocks, which come behind.
enum class Place : std::uint64_t { embedding, last, of_blocks };

std::uint64_t seed_at(std::uint64_t seed, Place place, std::size_t index = 0) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(place) + index);
}

std::int64_t layers_of(const ModelSpec& spec, const std::string& stack) {
  return stack == "decoder" ? settings_of(spec).decoder_layers : spec.num_layers;
}

}  // namespace

T5Stack::T5Stack(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                 const Workspace& own, const Workspace& source)
    : own_(own),
      source_(source),
      module_(names.module(name)),
      embedding_(names, names.module(name + ".embed_tokens"), names.tensor("shared.weight"),
                 spec.vocab_size, spec.hidden_size),
      first_dropout_{.module = names.module(name + ".dropout"),
                     .probability = spec.embedding_dropout},
      blocks_(own_, names, layers_of(spec, name),
              [spec, name](const ModelNames& all, std::int64_t index) {
                return T5Block(spec, all, name, index);
              }),
      bias_(spec, names, name + ".block.0.layer.0.SelfAttention", name == "decoder"),
      cross_bias_(spec, names, "", false),
      norm_(names, name + ".final_layer_norm", spec.hidden_size, spec.layer_norm_epsilon),
      last_dropout_{.module = first_dropout_.module, .probability = spec.residual_dropout} {}

auto T5Stack::block_forward(const BlockInputs& inputs, std::uint64_t seed) {
  return [this, inputs, seed](std::size_t layer, ModuleHooks& hooks, Buffer x) {
    return blocks_[layer].forward(inputs, hooks, std::move(x),
                                  seed_at(seed, Place::of_blocks, layer));
  };
}

// The embeddings are a local of T5Stack.forward, which lives until it returns.
Buffer T5Stack::forward(ModuleHooks& hooks, Tensor tokens, const Buffer* states,
                        std::uint64_t seed) {
  tokens_ = tokens;
  hooks.fetch(module_);
  Buffer embedded = embedding_.forward(own_, hooks, tokens_);
  Buffer x = first_dropout_.forward_beside(own_, hooks, seed_at(seed, Place::embedding), embedded);
  if (!x) x = std::move(embedded);
  const BlockInputs inputs{own_, source_, states, nullptr, bias_, cross_bias_};
  norm_input_ = blocks_.forward(hooks, std::move(x), block_forward(inputs, seed));
  Buffer out = norm_.forward(own_, hooks, norm_input_);
  out = last_dropout_.forward(own_, hooks, seed_at(seed, Place::last), std::move(out));
  if (!blocks_.recomputes()) {
    for (PositionBias* bias : {&bias_, &cross_bias_}) bias->forget(own_);
  }
  hooks.release(module_);
  return out;
}

// Autograd never comes back to token numbers: nothing releases the stack and its embedding.
Buffer T5Stack::backward(ModuleHooks& hooks, Buffer d_out, const Buffer* states, Buffer* d_states,
                         std::uint64_t seed) {
  hooks.fetch(module_);
  if (Buffer dropped = last_dropout_.backward(own_, hooks, d_out)) d_out = std::move(dropped);
  Buffer d_x = norm_.backward(own_, hooks, std::move(d_out), norm_input_);
  norm_input_.reset();
  const BlockInputs inputs{own_, source_, states, d_states, bias_, cross_bias_};
  const auto back = [&](std::size_t layer, ModuleHooks& inner, Buffer d_y) {
    return blocks_[layer].backward(inputs, inner, std::move(d_y),
                                   seed_at(seed, Place::of_blocks, layer));
  };
  d_x = blocks_.backward(hooks, std::move(d_x), block_forward(inputs, seed), back);
  return embed_back(hooks, std::move(d_x));
}

Buffer T5Stack::embed_back(ModuleHooks& hooks, Buffer d_x) {
  if (Buffer dropped = first_dropout_.backward(own_, hooks, d_x)) d_x = std::move(dropped);
  if (embedding_.is_trainable) hooks.fetch(embedding_.module);
  return embedding_.gradient(own_, d_x, tokens_);
}

}  // namespace dstune::t5
