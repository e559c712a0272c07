#include "core/train/families/bert/bert_block_tail.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/train/families/bert/bert_seeds.hpp"

namespace dstune::bert {

namespace {

using layers::Linear;
using layers::Workspace;

Linear linear(const ModelNames& names, const std::string& name, std::int64_t in, std::int64_t out) {
  return {names, name, in, out, layers::WeightOrder::out_in};
}

std::optional<layers::DropoutLayer> dropout_if(const ModelNames& names, const std::string& block,
                                               std::string_view name, double probability) {
  if (name.empty()) return std::nullopt;
  return layers::DropoutLayer{.module = names.module(concat(block, name)),
                              .probability = probability};
}

/// The residual is added in place: PyTorch's second buffer lives for this one addition.
void add(const Workspace& work, const Buffer& sum, const Buffer& more) {
  work.device->run(Add{sum.tensor(work.dtype), more.tensor(work.dtype)});
}

}  // namespace

BlockTail::BlockTail(const ModelSpec& spec, const ModelNames& names, std::int64_t index,
                     const BlockNames& called, const std::string& block,
                     std::string_view activation)
    : index_(index),
      scopes_(names, block, called.scopes),
      out_(linear(names, concat(block, called.out), spec.hidden_size, spec.hidden_size)),
      out_dropout_(dropout_if(names, block, called.out_dropout, spec.residual_dropout)),
      norm_(names, concat(block, called.norm), spec.hidden_size, spec.layer_norm_epsilon),
      inner_(linear(names, concat(block, called.inner), spec.hidden_size, spec.inner_size)),
      activation_(names.module(concat(block, called.activation)), activation, spec.inner_size),
      outer_(linear(names, concat(block, called.outer), spec.inner_size, spec.hidden_size)),
      dropout_{.module = names.module(concat(block, called.dropout)),
               .probability = spec.residual_dropout},
      last_norm_(names, concat(block, called.last_norm), spec.hidden_size,
                 spec.layer_norm_epsilon) {}

Buffer BlockTail::forward(const Workspace& work, ModuleHooks& hooks, Buffer& attended,
                          bool is_read_again, const Buffer& input, std::uint64_t seed) {
  scopes_.forward(hooks, kOut, [&] {
    sum_ = out_.forward(work, hooks, attended);
    if (!out_dropout_) return;
    sum_ = out_dropout_->forward(work, hooks, seed_at(seed, index_, Dropped::out), std::move(sum_));
  });
  scopes_.forward(hooks, kNorm, [&] {
    add(work, sum_, input);
    middle_ = norm_.forward(work, hooks, sum_, norm_stats_);
    if (!is_read_again && !out_.keeps_input(work, hooks)) attended.reset();
  });
  return mlp_forward(work, hooks, seed);
}

Buffer BlockTail::mlp_forward(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  scopes_.forward(hooks, kInner, [&] {
    activated_ = activation_.forward(work, hooks, inner_.forward(work, hooks, middle_));
  });
  Buffer projected;
  scopes_.forward(hooks, kOuter, [&] {
    projected = outer_.forward(work, hooks, activated_);
    projected =
        dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::mlp), std::move(projected));
  });
  // All three are there at once: where a checkpoint runs again, that is the peak.
  Buffer out;
  scopes_.forward(hooks, kLastNorm, [&] {
    const std::int64_t h = norm_.size;
    last_sum_ = work.activation(h);
    work.device->run(AddBroadcast{.a = work.matrix(projected, h),
                                  .b = work.matrix(middle_, h),
                                  .out = work.matrix(last_sum_, h)});
    out = last_norm_.forward(work, hooks, last_sum_, last_norm_stats_);
    if (!inner_.keeps_input(work, hooks)) middle_.reset();
    if (!outer_.keeps_input(work, hooks) && !activation_.reads_result()) activated_.reset();
  });
  return out;
}

BlockTail::Gradients BlockTail::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                                         const Buffer& attended) {
  Buffer d_middle = mlp_backward(work, hooks, std::move(d_out));
  Gradients gradients;
  scopes_.backward(hooks, kNorm, [&] {
    gradients.input = norm_.backward(work, hooks, d_middle, sum_, norm_stats_);
    for (Buffer* used : {&sum_, &norm_stats_, &d_middle}) used->reset();
  });
  scopes_.backward(hooks, kOut, [&] {
    gradients.attended = out_backward(work, hooks, gradients.input, attended);
  });
  return gradients;
}

Buffer BlockTail::mlp_backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out) {
  Buffer d_sum;
  scopes_.backward(hooks, kLastNorm, [&] {
    d_sum = last_norm_.backward(work, hooks, d_out, last_sum_, last_norm_stats_);
    for (Buffer* used : {&last_sum_, &last_norm_stats_, &d_out}) used->reset();
  });
  Buffer d_activated;
  scopes_.backward(hooks, kOuter, [&] {
    const Buffer dropped = dropout_.backward(work, hooks, d_sum);
    d_activated = outer_.backward(work, hooks, dropped ? dropped : d_sum, activated_);
  });
  scopes_.backward(hooks, kInner, [&] {
    Buffer d_inner =
        activation_.backward(work, hooks, std::move(d_activated), std::move(activated_));
    const Buffer d_middle = inner_.backward(work, hooks, d_inner, middle_);
    d_inner.reset();
    middle_.reset();
    add(work, d_sum, d_middle);
  });
  return d_sum;
}

Buffer BlockTail::out_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_sum,
                               const Buffer& attended) {
  Buffer dropped;
  if (out_dropout_) dropped = out_dropout_->backward(work, hooks, d_sum);
  return out_.backward(work, hooks, dropped ? dropped : d_sum, attended);
}

}  // namespace dstune::bert
