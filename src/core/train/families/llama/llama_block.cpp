#include "core/train/families/llama/llama_block.hpp"

#include <string>
#include <string_view>
#include <type_traits>
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

/// What drops out in one layer.
enum class Dropped : std::uint64_t { scores, attention, mlp };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t layer, Dropped place) {
  constexpr std::uint64_t kMostLayers = std::uint64_t{1} << 20U;
  return layers::seed_of(
      seed, static_cast<std::uint64_t>(place) * kMostLayers + static_cast<std::uint64_t>(layer));
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

LlamaBlock::AttentionPart LlamaBlock::attention_of(const ModelSpec& spec,
                                                   const LlamaSettings& settings,
                                                   const ModelNames& names, std::int64_t index) {
  const std::string name = name_of(index, ".self_attn");
  if (settings.is_phi) return Phi3Attention(spec, settings, names, name, index);
  return LlamaAttention(spec, settings, names, name, index);
}

LlamaBlock::MlpPart LlamaBlock::mlp_of(const ModelSpec& spec, const LlamaSettings& settings,
                                       const ModelNames& names, std::int64_t index) {
  const std::string name = name_of(index, ".mlp");
  if (settings.is_phi) return Phi3Mlp(spec, settings, names, name);
  if (settings.experts.in_layer[static_cast<std::size_t>(index)]) {
    return MoeBlock(spec, settings, names, name);
  }
  return LlamaMlp(spec, settings, names, name);
}

LlamaBlock::LlamaBlock(const ModelSpec& spec, const LlamaSettings& settings,
                       const ModelNames& names, std::int64_t index)
    : index_(index),
      module_(names.module(name_of(index))),
      attention_(attention_of(spec, settings, names, index)),
      mlp_(mlp_of(spec, settings, names, index)),
      input_norm_(norm(spec, settings, names, index, ".input_layernorm")),
      middle_norm_(
          norm(spec, settings, names, index,
               settings.post_norms ? ".pre_feedforward_layernorm" : ".post_attention_layernorm")) {
  const auto dropout = [&](std::string_view part) {
    return layers::DropoutLayer{.module = names.module(name_of(index, part)),
                                .probability = spec.residual_dropout};
  };
  if (settings.is_phi) {
    attention_dropout_ = dropout(".resid_attn_dropout");
    mlp_dropout_ = dropout(".resid_mlp_dropout");
  }
  if (!settings.post_norms) return;
  post_attention_norm_ = norm(spec, settings, names, index, ".post_attention_layernorm");
  post_mlp_norm_ = norm(spec, settings, names, index, ".post_feedforward_layernorm");
}

Buffer LlamaBlock::attend(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                          const Buffer& mask, std::uint64_t seed) {
  Buffer x = input_norm_.forward(work, hooks, input_);
  Buffer attended = std::visit(
      [&](auto& part) {
        return part.forward(work, hooks, rotary, mask, std::move(x),
                            seed_at(seed, index_, Dropped::scores));
      },
      attention_);
  if (!attention_dropout_) return attended;
  return attention_dropout_->forward(work, hooks, seed_at(seed, index_, Dropped::attention),
                                     std::move(attended));
}

Buffer LlamaBlock::run_mlp(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  Buffer x = middle_norm_.forward(work, hooks, middle_);
  const std::uint64_t routes = layers::mix(seed_at(seed, index_, Dropped::scores));
  Buffer out = std::visit(
      [&](auto& part) {
        if constexpr (std::is_same_v<std::decay_t<decltype(part)>, MoeBlock>) {
          return part.forward(work, hooks, std::move(x), routes);
        } else {
          return part.forward(work, hooks, std::move(x));
        }
      },
      mlp_);
  if (!mlp_dropout_) return out;
  return mlp_dropout_->forward(work, hooks, seed_at(seed, index_, Dropped::mlp), std::move(out));
}

// The residuals are added in place: PyTorch's second buffer lives for this one addition, and more
// is in use at the head in any case.
Buffer LlamaBlock::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                           const Buffer& mask, Buffer x, std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  Buffer out;
  {
    const Residual residual{work, middle_};
    middle_ = normed(work, hooks, post_attention_norm_, attend(work, hooks, rotary, mask, seed),
                     attended_);
    add(work, middle_, input_);
    out = normed(work, hooks, post_mlp_norm_, run_mlp(work, hooks, seed), mlp_out_);
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
  hooks.fetch(module_);
  Buffer d_mlp;
  if (post_mlp_norm_) d_mlp = normed_back(work, hooks, *post_mlp_norm_, d_out, mlp_out_);
  if (mlp_dropout_) d_mlp = mlp_dropout_->backward(work, hooks, d_out);
  Buffer d_normed_middle = std::visit(
      [&](auto& part) { return part.backward(work, hooks, d_mlp ? d_mlp : d_out); }, mlp_);
  d_mlp.reset();
  Buffer d_middle = middle_norm_.backward(work, hooks, std::move(d_normed_middle), middle_);
  middle_.reset();
  add(work, d_middle, d_out);
  d_out.reset();
  Buffer d_attended;
  if (post_attention_norm_) {
    d_attended = normed_back(work, hooks, *post_attention_norm_, d_middle, attended_);
  }
  if (attention_dropout_) d_attended = attention_dropout_->backward(work, hooks, d_middle);
  Buffer d_normed = std::visit(
      [&](auto& part) {
        return part.backward(work, hooks, rotary, d_attended ? d_attended : d_middle,
                             seed_at(seed, index_, Dropped::scores));
      },
      attention_);
  d_attended.reset();
  Buffer d_input = input_norm_.backward(work, hooks, std::move(d_normed), input_);
  input_.reset();
  add(work, d_input, d_middle);
  hooks.release(module_);
  return d_input;
}

}  // namespace dstune::llama
