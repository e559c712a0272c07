#include "core/train/families/moe/moe_balance.hpp"

#include <utility>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/router_balance.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::llama {

using layers::Workspace;

namespace {

Buffer zeros(const Workspace& work, std::int64_t count) {
  Buffer buffer = make_buffer(*work.device, MemoryCategory::activations, count, DType::fp32);
  work.device->run(FillZero{buffer.tensor(DType::fp32)});
  return buffer;
}

}  // namespace

void RouterBalance::take(MoeBlock& block, const Workspace& work, bool forgets) {
  Routes routes{block.router().take_logits(), block.router().chosen(), {}};
  if (forgets) {
    const std::int64_t count = routes.experts.numel;
    routes.copied = make_buffer(*work.device, MemoryCategory::activations, count, DType::int64);
    work.device->run(Copy{routes.experts, routes.copied.tensor(DType::int64)});
    routes.experts = routes.copied.tensor(DType::int64);
  }
  routes_.push_back(std::move(routes));
}

// The logits are of the model's output, which lives until the loss is there.
void RouterBalance::forward(const Workspace& work, Tensor loss) {
  counts_ = zeros(work, experts_);
  const Buffer sums = zeros(work, experts_);
  for (const Routes& routes : routes_) {
    probs_.push_back(work.activation(experts_));
    const Matrix probs = work.matrix(probs_.back(), experts_);
    work.device->run(Softmax{work.matrix(routes.logits, experts_), probs});
    work.device->run(AddRouting{.probs = probs,
                                .experts = routes.experts,
                                .counts = counts_.tensor(DType::fp32),
                                .sums = sums.tensor(DType::fp32)});
  }
  work.device->run(BalanceLoss{.counts = counts_.tensor(DType::fp32),
                               .sums = sums.tensor(DType::fp32),
                               .rows = rows(work),
                               .factor = factor_,
                               .loss = loss});
  routes_.clear();
}

void RouterBalance::backward(const Workspace& work, const std::vector<MoeBlock*>& blocks,
                             double factor) {
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const Buffer probs = std::move(probs_[i]);
    if (blocks[i] == nullptr) continue;
    Buffer d_logits = work.activation(experts_);
    const Matrix d = work.matrix(d_logits, experts_);
    work.device->run(BalanceLossBackward{.counts = counts_.tensor(DType::fp32),
                                         .rows = rows(work),
                                         .factor = factor * factor_,
                                         .d_probs = d});
    work.device->run(
        SoftmaxBackward{.d_probs = d, .probs = work.matrix(probs, experts_), .d_scores = d});
    blocks[i]->add_to_logits(std::move(d_logits));
  }
  probs_.clear();
  counts_.reset();
}

}  // namespace dstune::llama
