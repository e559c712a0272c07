#include "core/train/nn/tape_model.hpp"

namespace dstune::nn {

void TapeModel::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  context_.seed = seed;
  tape_.emplace(context_, hooks);
  loss_node_ = run(*tape_, {tokens, seed, loss}).node;
}

void TapeModel::backward(ModuleHooks& /*hooks*/, double factor) {
  factor_ = factor;
  if (loss_node_ != Value::kNoNode) tape_->backward(loss_node_, {});
  tape_.reset();
}

}  // namespace dstune::nn
