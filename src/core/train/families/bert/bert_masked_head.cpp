#include "core/train/families/bert/bert_masked_head.hpp"

#include <string>
#include <utility>

namespace dstune::bert {

namespace {

using layers::Workspace;

std::optional<std::size_t> module_if(const ModelNames& names, std::string_view name) {
  return name.empty() ? std::nullopt : std::optional(names.module(name));
}

// RoBERTa's is the same function whatever the config says.
std::string function_of(const ModelSpec& spec) {
  return kin_of(spec) == Variant::roberta ? "gelu" : settings_of(spec).activation;
}

}  // namespace

MaskedHead::MaskedHead(const ModelSpec& spec, const ModelNames& names, std::size_t word_table)
    : MaskedHead(spec, names, word_table, names_of(kin_of(spec)).masked, function_of(spec),
                 spec.hidden_size) {}

MaskedHead::MaskedHead(const ModelSpec& spec, const ModelNames& names, std::size_t word_table,
                       const MaskedHeadNames& called, std::string_view activation,
                       std::int64_t size)
    : scopes_(names, "", called.scopes),
      dense_(names, std::string(called.dense), spec.hidden_size, size, layers::WeightOrder::out_in),
      activation_(module_if(names, called.activation), activation, size),
      norm_(names, std::string(called.norm), size, spec.layer_norm_epsilon),
      decoder_(names.module(called.decoder), word_table, names.tensor(called.bias), size,
               spec.vocab_size, layers::WeightOrder::out_in),
      loss_module_(module_if(names, called.loss)),
      loss_{.classes = spec.vocab_size} {}

void MaskedHead::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Buffer labels,
                         Tensor loss) {
  input_ = std::move(x);
  scopes_.forward(hooks, kTransform, [&] {
    activated_ = activation_.forward(work, hooks, dense_.forward(work, hooks, input_));
  });
  scopes_.forward(hooks, kTransformNorm,
                  [&] { normed_ = norm_.forward(work, hooks, activated_, stats_); });
  Buffer logits;
  scopes_.forward(hooks, kDecode, [&] { logits = decoder_.forward(work, hooks, normed_); });
  if (loss_module_) hooks.fetch(*loss_module_);
  loss_.forward(work, std::move(logits), std::move(labels), loss);
  if (loss_module_) hooks.release(*loss_module_);
}

Buffer MaskedHead::backward(const Workspace& work, ModuleHooks& hooks, double factor,
                            Buffer& d_table) {
  if (loss_module_) hooks.fetch(*loss_module_);
  Buffer d_logits = loss_.backward(work, factor);
  if (loss_module_) hooks.release(*loss_module_);
  Buffer d_normed;
  scopes_.backward(hooks, kDecode, [&] {
    d_normed = decoder_.backward(work, hooks, d_logits, normed_, &d_table);
    normed_.reset();
    d_logits.reset();
  });
  Buffer d_activated;
  scopes_.backward(hooks, kTransformNorm, [&] {
    d_activated = norm_.backward(work, hooks, d_normed, activated_, stats_);
    stats_.reset();
    d_normed.reset();
  });
  Buffer d_input;
  scopes_.backward(hooks, kTransform, [&] {
    const Buffer d_dense =
        activation_.backward(work, hooks, std::move(d_activated), std::move(activated_));
    d_input = dense_.backward(work, hooks, d_dense, input_);
    input_.reset();
  });
  return d_input;
}

}  // namespace dstune::bert
