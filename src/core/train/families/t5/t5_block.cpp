#include "core/train/families/t5/t5_block.hpp"

#include <utility>

#include "core/base/text.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

// Where chance has a part in a block.
enum class Place : std::uint64_t { scores, self, cross_scores, cross, inner, mlp };

std::uint64_t seed_at(std::uint64_t seed, Place place) {
  return layers::seed_of(seed, static_cast<std::uint64_t>(place));
}

std::string name_of(const std::string& stack, std::int64_t index, const char* part = "") {
  return concat(stack, ".block.", index, part);
}

}  // namespace

T5Block::T5Block(const ModelSpec& spec, const ModelNames& names, const std::string& stack,
                 std::int64_t index)
    : module_(names.module(name_of(stack, index))),
      self_{Residual(spec, names, name_of(stack, index, ".layer.0")),
            T5Attention(spec, names, name_of(stack, index, ".layer.0.SelfAttention"), index == 0)},
      mlp_layer_(spec, names, name_of(stack, index, stack == "decoder" ? ".layer.2" : ".layer.1")),
      mlp_(spec, names,
           name_of(stack, index,
                   stack == "decoder" ? ".layer.2.DenseReluDense" : ".layer.1.DenseReluDense")) {
  if (stack != "decoder") return;
  cross_.emplace(Attended{
      Residual(spec, names, name_of(stack, index, ".layer.1")),
      T5Attention(spec, names, name_of(stack, index, ".layer.1.EncDecAttention"), index == 0)});
}

Buffer T5Block::forward(const BlockInputs& inputs, ModuleHooks& hooks, Buffer x,
                        std::uint64_t seed) {
  const Workspace& work = inputs.own;
  const auto at = [&](Place place) { return seed_at(seed, place); };
  hooks.fetch(module_);
  x = self_.layer.forward(work, hooks, std::move(x), at(Place::self), [&](Buffer normed) {
    const Call call = self_.attention.call(work, work, at(Place::scores));
    return self_.attention.forward(call, hooks, std::move(normed), nullptr, inputs.bias);
  });
  if (cross_) {
    x = cross_->layer.forward(work, hooks, std::move(x), at(Place::cross), [&](Buffer normed) {
      const Call call = cross_->attention.call(work, inputs.source, at(Place::cross_scores));
      return cross_->attention.forward(call, hooks, std::move(normed), inputs.states,
                                       inputs.cross_bias);
    });
  }
  x = mlp_layer_.forward(work, hooks, std::move(x), at(Place::mlp), [&](Buffer normed) {
    return mlp_.forward(work, hooks, std::move(normed), at(Place::inner));
  });
  hooks.release(module_);
  return x;
}

Buffer T5Block::attend_back(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out,
                            std::uint64_t seed) {
  const Call call = self_.attention.call(inputs.own, inputs.own, seed_at(seed, Place::scores));
  return self_.layer.backward(inputs.own, hooks, std::move(d_out), [&](const Buffer& d) {
    return self_.attention.backward(call, hooks, d, nullptr, nullptr, inputs.bias);
  });
}

Buffer T5Block::cross_back(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out,
                           std::uint64_t seed) {
  const Call call =
      cross_->attention.call(inputs.own, inputs.source, seed_at(seed, Place::cross_scores));
  return cross_->layer.backward(inputs.own, hooks, std::move(d_out), [&](const Buffer& d) {
    return cross_->attention.backward(call, hooks, d, inputs.states, inputs.d_states,
                                      inputs.cross_bias);
  });
}

Buffer T5Block::backward(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out,
                         std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_x = mlp_layer_.backward(inputs.own, hooks, std::move(d_out), [&](const Buffer& d) {
    return mlp_.backward(inputs.own, hooks, d);
  });
  if (cross_) d_x = cross_back(inputs, hooks, std::move(d_x), seed);
  d_x = attend_back(inputs, hooks, std::move(d_x), seed);
  hooks.release(module_);
  return d_x;
}

}  // namespace dstune::t5
