#include "core/train/nn/tape_model.hpp"

namespace dstune::nn {

void TapeModel::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  context_.seed = seed;
  tape_.emplace(context_, hooks);
  loss_node_ = run_wrapped(*tape_, {tokens, seed, loss}).node;
}

// PEFT's PeftModel is a module that calls the model; the root stands for it, too.
Value TapeModel::run_wrapped(Tape& on, const StepInput& input) {
  constexpr std::size_t kRoot = 0;
  const auto body = [&] { return run(on, input); };
  return is_wrapped_ ? run_module(on, kRoot, body) : body();
}

void TapeModel::backward(ModuleHooks& /*hooks*/, double factor) {
  factor_ = factor;
  if (loss_node_ != Value::kNoNode) tape_->backward(loss_node_, {});
  tape_.reset();
}

}  // namespace dstune::nn
