#include "core/train/nn/losses/causal_loss.hpp"

#include <utility>

#include "core/train/nn/elementwise.hpp"
#include "core/train/nn/losses/cross_entropy.hpp"
#include "core/train/nn/losses/labelled_rows.hpp"
#include "core/train/nn/views.hpp"

namespace dstune::nn {

LmHead::LmHead(const ModelNames& names, const std::string& name,
               std::optional<std::size_t> tied_weight, double cap)
    : softcap(cap) {
  product.module = names.module(name);
  product.weight = tied_weight ? *tied_weight : names.tensor(name + ".weight");
  product.in = names.shape(product.weight).at(1);
  product.out = names.shape(product.weight).at(0);
}

Value plain_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                 const double& factor, Value* held_logits) {
  const Value labels = next_tokens(on, input.tokens);
  Value logits = head.product(on, x);
  if (head.softcap > 0) logits = soft_cap(on, std::move(logits), head.softcap);
  Value loss = cross_entropy(on, cast(on, logits, DType::fp32), labels, factor, input.loss);
  if (held_logits != nullptr) *held_logits = logits.detached();
  return loss;
}

}  // namespace dstune::nn
