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

RmsNormLayer norm(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                  std::int64_t index, std::string_view part) {
  return {names, name_of(index, part),         spec.hidden_size, spec.layer_norm_epsilon,
          1,     settings.is_gemma ? 1.0 : 0.0};
}

/// x, or x normalised; `kept` becomes x where that is saved.
Buffer normed(const Workspace& work, ModuleHooks& hooks, std::optional<RmsNormLayer>& norm,
              Buffer x, Buffer& kept) {
  if (!norm) return x;
  Buffer y = norm->forward(work, hooks, x);
  if (RmsNormLayer::keeps_input(work)) kept = std::move(x);
  return y;
}

/// The gradient by the x of normed().
Buffer normed_back(const Workspace& work, ModuleHooks& hooks, RmsNormLayer& norm, const Buffer& d_y,
                   Buffer& kept) {
  Buffer d_x = norm.backward_beside(work, hooks, d_y, kept);
  kept.reset();
  return d_x;
}

/// A residual that is kept no longer than forward runs, also where that ends early.
struct Residual {
  const Workspace& work;
  Buffer& sum;

  ~Residual() {
    if (!RmsNormLayer::keeps_input(work)) sum.reset();
  }
};

void add(const Workspace& work, const Buffer& sum, const Buffer& term) {
  work.device->run(Add{sum.tensor(work.dtype), term.tensor(work.dtype)});
}

}  // namespace

LlamaBlock::LlamaBlock(const ModelSpec& spec, const LlamaSettings& settings,
                       const ModelNames& names, std::int64_t index)
    : index_(index),
      module_(names.module(name_of(index))),
      attention_(spec, settings, names, name_of(index, ".self_attn"), index),
      mlp_(spec, settings, names, name_of(index, ".mlp")),
      input_norm_(norm(spec, settings, names, index, ".input_layernorm")),
      middle_norm_(
          norm(spec, settings, names, index,
               settings.post_norms ? ".pre_feedforward_layernorm" : ".post_attention_layernorm")) {
  if (!settings.post_norms) return;
  post_attention_norm_ = norm(spec, settings, names, index, ".post_attention_layernorm");
  post_mlp_norm_ = norm(spec, settings, names, index, ".post_feedforward_layernorm");
}

// The residuals are added in place: PyTorch's second buffer lives for this one addition, and more
// is in use at the head in any case.
Buffer LlamaBlock::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                           const Buffer& mask, Buffer x, std::uint64_t seed) {
  const auto place = static_cast<std::uint64_t>(index_);
  hooks.fetch(module_);
  input_ = std::move(x);
  Buffer out;
  {
    const Residual residual{work, middle_};
    Buffer attended =
        attention_.forward(work, hooks, rotary, mask, input_norm_.forward(work, hooks, input_),
                           layers::seed_of(seed, place));
    middle_ = normed(work, hooks, post_attention_norm_, std::move(attended), attended_);
    add(work, middle_, input_);
    out = normed(work, hooks, post_mlp_norm_,
                 mlp_.forward(work, hooks, middle_norm_.forward(work, hooks, middle_)), mlp_out_);
    add(work, out, middle_);
  }
  hooks.release(module_);
  return out;
}

void LlamaBlock::forget_input(const Workspace& work) {
  if (!RmsNormLayer::keeps_input(work)) input_.reset();
}

Buffer LlamaBlock::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                            Buffer d_out, std::uint64_t seed) {
  const auto place = static_cast<std::uint64_t>(index_);
  hooks.fetch(module_);
  Buffer d_mlp;
  if (post_mlp_norm_) d_mlp = normed_back(work, hooks, *post_mlp_norm_, d_out, mlp_out_);
  Buffer d_normed_middle = mlp_.backward(work, hooks, d_mlp ? d_mlp : d_out);
  d_mlp.reset();
  Buffer d_middle = middle_norm_.backward(work, hooks, std::move(d_normed_middle), middle_);
  middle_.reset();
  add(work, d_middle, d_out);
  d_out.reset();
  Buffer d_attended;
  if (post_attention_norm_) {
    d_attended = normed_back(work, hooks, *post_attention_norm_, d_middle, attended_);
  }
  Buffer d_normed = attention_.backward(work, hooks, rotary, d_attended ? d_attended : d_middle,
                                        layers::seed_of(seed, place));
  d_attended.reset();
  Buffer d_input = input_norm_.backward(work, hooks, std::move(d_normed), input_);
  input_.reset();
  add(work, d_input, d_middle);
  hooks.release(module_);
  return d_input;
}

}  // namespace dstune::llama
