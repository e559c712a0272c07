#include "core/train/families/t5/t5_attention.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

using layers::Linear;
using layers::Workspace;

Linear linear(const ModelNames& names, const std::string& name, std::int64_t in, std::int64_t out) {
  return {names, name, in, out, layers::WeightOrder::out_in, false};
}

std::int64_t width_of(const ModelSpec& spec) {
  return spec.num_heads * settings_of(spec).head_size;
}

/// sum += term, or becomes it.
void add(const Workspace& work, Buffer& sum, Buffer term) {
  if (!sum) {
    sum = std::move(term);
  } else {
    work.device->run(Add{sum.tensor(work.dtype), term.tensor(work.dtype)});
  }
}

}  // namespace

T5Attention::T5Attention(const ModelSpec& spec, const ModelNames& names, const std::string& name,
                         bool is_first)
    : heads_(spec.num_heads),
      head_size_(settings_of(spec).head_size),
      dropout_(spec.attention_dropout),
      is_first_(is_first),
      module_(names.module(name)),
      q_proj_(linear(names, name + ".q", spec.hidden_size, width_of(spec))),
      k_proj_(linear(names, name + ".k", spec.hidden_size, width_of(spec))),
      v_proj_(linear(names, name + ".v", spec.hidden_size, width_of(spec))),
      o_proj_(linear(names, name + ".o", width_of(spec), spec.hidden_size)) {}

Call T5Attention::call(const Workspace& queries, const Workspace& keys, std::uint64_t seed) const {
  return {.queries = queries,
          .keys = keys,
          .heads = heads_,
          .head_size = head_size_,
          .dropout = dropout_,
          .seed = seed};
}

void T5Attention::forget_heads() {
  for (Buffer* used : {&q_, &k_, &v_}) used->reset();
}

Buffer T5Attention::forward(const Call& call, ModuleHooks& hooks, Buffer x, const Buffer* states,
                            PositionBias& bias) {
  hooks.fetch(module_);
  input_ = std::move(x);
  const Buffer& source = states == nullptr ? input_ : *states;
  q_ = q_proj_.forward(call.queries, hooks, input_);
  k_ = k_proj_.forward(call.keys, hooks, source);
  v_ = v_proj_.forward(call.keys, hooks, source);
  if (is_first_) bias.make(call.queries, call.keys, hooks);
  out_ = is_eager(call) ? eager_.forward(call, q_, k_, v_, bias)
                        : sdpa_.forward(call, q_, k_, v_, bias);
  if (is_eager(call) && call.queries.micro_batch > 1) forget_heads();
  Buffer y = o_proj_.forward(call.queries, hooks, out_);
  const auto keeps = [&](const Linear& linear) { return linear.keeps_input(call.queries, hooks); };
  const bool of_keys = states == nullptr && (keeps(k_proj_) || keeps(v_proj_));
  if (!keeps(q_proj_) && !of_keys) input_.reset();
  if (is_eager(call) && !keeps(o_proj_)) out_.reset();
  hooks.release(module_);
  return y;
}

Gradients T5Attention::attend_back(const Call& call, Buffer d_out, PositionBias& bias) {
  if (is_eager(call)) {
    out_.reset();
    return eager_.backward(call, std::move(d_out), q_, k_, v_, bias);
  }
  Gradients d = sdpa_.backward(call, d_out, q_, k_, v_, bias);
  out_.reset();
  return d;
}

// In the order of autograd: the last projection of forward is the first.
Buffer T5Attention::backward(const Call& call, ModuleHooks& hooks, const Buffer& d_out,
                             const Buffer* states, Buffer* d_states, PositionBias& bias) {
  hooks.fetch(module_);
  Gradients d = attend_back(call, o_proj_.backward(call.queries, hooks, d_out, out_), bias);
  forget_heads();
  if (is_first_) bias.finish(call.queries, hooks);
  Buffer d_x;
  const Buffer& source = states == nullptr ? input_ : *states;
  Buffer& d_source = states == nullptr ? d_x : *d_states;
  add(call.keys, d_source, v_proj_.backward(call.keys, hooks, d.v, source));
  d.v.reset();
  add(call.keys, d_source, k_proj_.backward(call.keys, hooks, d.k, source));
  d.k.reset();
  add(call.queries, d_x, q_proj_.backward(call.queries, hooks, d.q, input_));
  input_.reset();
  hooks.release(module_);
  return d_x;
}

}  // namespace dstune::t5
