#include "core/train/families/moe/moe_block.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/add.hpp"
#include "core/device/operations/weighted_rows.hpp"

namespace dstune::llama {

using layers::Linear;
using layers::WeightOrder;
using layers::Workspace;

namespace {

layers::RouterSettings router_settings(const ModelSpec& spec, const ExpertSettings& experts) {
  return {.inputs = spec.hidden_size,
          .experts = experts.count,
          .chosen = experts.chosen,
          .normalised = experts.normalised,
          .weights_in_fp32 = experts.weights_in_fp32,
          .keeps_logits = experts.balance > 0,
          .imbalance = spec.expert_imbalance};
}

ModelSpec with_inner_size(ModelSpec spec, std::int64_t inner_size) {
  spec.inner_size = inner_size;
  return spec;
}

void add(const Workspace& work, const Buffer& sum, const Buffer& term) {
  work.device->run(Add{sum.tensor(work.dtype), term.tensor(work.dtype)});
}

}  // namespace

MoeBlock::MoeBlock(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                   const std::string& name)
    : size_(spec.hidden_size),
      module_(names.module(name)),
      router_(names, name + ".gate", router_settings(spec, settings.experts)),
      experts_(names, name + ".experts",
               {.count = settings.experts.count,
                .chosen = settings.experts.chosen,
                .outer = spec.hidden_size,
                .inner = settings.experts.inner_size},
               settings.activation) {
  if (settings.experts.shared_size == 0) return;
  shared_ = Shared{
      LlamaMlp(with_inner_size(spec, settings.experts.shared_size), settings, names,
               name + ".shared_expert"),
      Linear(names, name + ".shared_expert_gate", spec.hidden_size, 1, WeightOrder::out_in, false)};
  shared_->mlp.share_input();
}

// Experts take their rows from x by numbers.
bool MoeBlock::keeps_input(const Workspace& work, const ModuleHooks& hooks) const {
  if (router_.keeps_input(work, hooks)) return true;
  return shared_ &&
         (shared_->mlp.keeps_input(work, hooks) || shared_->gate.keeps_input(work, hooks));
}

void MoeBlock::add_shared(const Workspace& work, ModuleHooks& hooks, const Buffer& out) {
  const Buffer logits = shared_->gate.forward(work, hooks, input());
  shared_->openness = work.activation(1);
  const Tensor openness = shared_->openness.tensor(work.dtype);
  work.device->run(
      Activate{.kind = Activation::sigmoid, .x = logits.tensor(work.dtype), .out = openness});
  const Buffer opened = work.activation(size_);
  work.device->run(ScaleRows{.in = work.matrix(shared_->out, size_),
                             .factors = openness,
                             .out = work.matrix(opened, size_)});
  add(work, out, opened);
}

// What the router gives, its logits too, is a local of the block's forward.
Buffer MoeBlock::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed) {
  return layers::inside(hooks, module_, [&] {
    if (shared_) {
      shared_->out = shared_->mlp.forward(work, hooks, std::move(x));
    } else {
      input_ = std::move(x);
    }
    const Buffer weights = router_.forward(work, hooks, input(), seed);
    Buffer out = experts_.forward(work, hooks, input(), router_.chosen(), weights,
                                  router_.weight_type(work));
    if (shared_) add_shared(work, hooks, out);
    if (!keeps_input(work, hooks)) {
      input_.reset();
      if (shared_) shared_->mlp.forget_input();
    }
    return out;
  });
}

Buffer MoeBlock::shared_gate_back(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                                  Buffer& d_shared) {
  const Buffer d_openness = work.activation(1);
  const Tensor openness = shared_->openness.tensor(work.dtype);
  {
    const Buffer products = work.activation(size_);
    work.device->run(RowDots{.a = work.matrix(d_out, size_),
                             .b = work.matrix(shared_->out, size_),
                             .products = products.tensor(work.dtype),
                             .out = d_openness.tensor(work.dtype)});
  }
  d_shared = work.activation(size_);
  work.device->run(ScaleRows{
      .in = work.matrix(d_out, size_), .factors = openness, .out = work.matrix(d_shared, size_)});
  shared_->out.reset();
  work.device->run(ActivateBackward{.kind = Activation::sigmoid,
                                    .d_out = d_openness.tensor(work.dtype),
                                    .saved = openness,
                                    .d_x = d_openness.tensor(work.dtype)});
  shared_->openness.reset();
  return shared_->gate.backward(work, hooks, d_openness, input());
}

// In the order of autograd, which goes back to what ran last: the gate of the shared expert,
// experts, router, and the shared expert.
Buffer MoeBlock::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  return layers::inside(hooks, module_, [&] {
    hooks.saved_is_read();
    Buffer d_shared;
    Buffer d_x;
    if (shared_) d_x = shared_gate_back(work, hooks, d_out, d_shared);
    Buffer d_weights;
    Buffer term = experts_.backward(work, hooks, d_out, router_.weight_type(work), d_weights);
    if (d_x) {
      add(work, d_x, term);
    } else {
      d_x = std::move(term);
    }
    term = router_.backward(work, hooks, std::move(d_weights), std::move(d_logits_), input());
    add(work, d_x, term);
    if (shared_) {
      term = shared_->mlp.backward(work, hooks, d_shared);
      add(work, d_x, term);
    }
    input_.reset();
    return d_x;
  });
}

}  // namespace dstune::llama
