#include "core/train/nn/tape_model.hpp"

#include <utility>

namespace dstune::nn {

void TapeModel::forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) {
  work_.seed = seed;
  tape_.emplace(work_, hooks);
  loss_node_ = run(*tape_, {tokens, seed, loss}).node;
}

void TapeModel::backward(ModuleHooks& /*hooks*/, double factor) {
  factor_ = factor;
  if (loss_node_ != Value::kNoNode) tape_->backward(loss_node_, {});
  tape_.reset();
}

Value TapeModel::sum_of_losses(Tape& on, const Value& a, const Value& b) {
  return on.record({}, [first = a.node, second = b.node](Tape& back, const Value&) {
    back.give(first, {});
    back.give(second, {});
  });
}

Value TapeModel::head_loss(Tape& on, layers::DecoderHead& head,
                           std::optional<std::size_t> tied_weight, Value x,
                           const StepInput& input) {
  const std::size_t node = x.node;
  const std::int64_t rows = x.matrix.rows;
  const std::int64_t cols = x.matrix.cols;
  head.forward(on.work(), on.hooks(), std::move(x.storage->buffer), input.tokens, input.seed,
               input.loss);
  NodeParameters trained;
  if (tied_weight && on.hooks().is_trainable(*tied_weight)) trained.add(*tied_weight);
  return on.record({}, trained, [this, &head, tied_weight, node, rows, cols](Tape& back, Value) {
    Buffer d_tied;
    Buffer d_x = head.backward(back.work(), back.hooks(), factor_, d_tied);
    back.give(node, value_of(std::move(d_x), back.work().dtype, rows, cols));
    if (d_tied) {
      back.give(*tied_weight, std::move(d_tied),
                layers::weight_gradient_is_view(back.work()) ? Memory::view : Memory::own);
    }
  });
}

}  // namespace dstune::nn
