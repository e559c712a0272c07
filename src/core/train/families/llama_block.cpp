#include "core/train/families/llama_block.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"

namespace dstune::llama {

using layers::RmsNormLayer;
using layers::Rotary;
using layers::Workspace;

namespace {

std::string name_of(std::int64_t index, std::string_view part = {}) {
  return concat("model.layers.", index, part);
}

void add(const Workspace& work, const Buffer& sum, const Buffer& term) {
  work.device->run(Add{sum.tensor(work.dtype), term.tensor(work.dtype)});
}

}  // namespace

Block::Block(const ModelSpec& spec, const Settings& settings, const ModelNames& names,
             std::int64_t index)
    : index_(index),
      module_(names.module(name_of(index))),
      attention_(spec, settings, names, name_of(index, ".self_attn"), index),
      mlp_(spec, settings, names, name_of(index, ".mlp")),
      input_norm_(names, name_of(index, ".input_layernorm"), spec.hidden_size,
                  spec.layer_norm_epsilon),
      middle_norm_(names, name_of(index, ".post_attention_layernorm"), spec.hidden_size,
                   spec.layer_norm_epsilon) {}

// The residuals are added in place: PyTorch's second buffer lives for this one addition, and more
// is in use at the head in any case.
Buffer Block::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary, Buffer x,
                      std::uint64_t seed) {
  const auto place = static_cast<std::uint64_t>(index_);
  hooks.fetch(module_);
  input_ = std::move(x);
  middle_ = attention_.forward(work, hooks, rotary, input_norm_.forward(work, hooks, input_),
                               layers::seed_of(seed, place));
  add(work, middle_, input_);
  Buffer out = mlp_.forward(work, hooks, middle_norm_.forward(work, hooks, middle_));
  add(work, out, middle_);
  if (!RmsNormLayer::keeps_input(work)) middle_.reset();
  hooks.release(module_);
  return out;
}

void Block::forget_input(const Workspace& work) {
  if (!RmsNormLayer::keeps_input(work)) input_.reset();
}

Buffer Block::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                       Buffer d_out, std::uint64_t seed) {
  const auto place = static_cast<std::uint64_t>(index_);
  hooks.fetch(module_);
  Buffer d_middle = middle_norm_.backward(work, hooks, mlp_.backward(work, hooks, d_out), middle_);
  middle_.reset();
  add(work, d_middle, d_out);
  d_out.reset();
  Buffer d_normed =
      attention_.backward(work, hooks, rotary, d_middle, layers::seed_of(seed, place));
  Buffer d_input = input_norm_.backward(work, hooks, std::move(d_normed), input_);
  input_.reset();
  add(work, d_input, d_middle);
  hooks.release(module_);
  return d_input;
}

}  // namespace dstune::llama
