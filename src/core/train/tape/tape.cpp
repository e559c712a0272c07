#include "core/train/tape/tape.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

Tape::~Tape() { clear(); }

void Tape::clear() {
  while (!nodes_.empty()) nodes_.pop_back();  // what was made last may need what was made before
  leaves_.clear();
  memory_.rewind();
}

Saved Tape::save(const Value& value) {
  if (mode_ == Mode::refills) {
    frame_->refill(value.detached());
    return {};
  }
  return frame_ == nullptr ? Saved(value.detached()) : frame_->save();
}

Tape::Leaf& Tape::leaf(std::size_t tensor) {
  if (tensor >= leaves_.size()) leaves_.resize(tensor + 1);
  return leaves_[tensor];
}

void Tape::give(std::size_t node, Value gradient) {
  if (node != Value::kNoNode) outputs_.push_back({node, std::move(gradient)});
}

void Tape::give(std::size_t tensor, Buffer gradient, Memory memory) {
  parameter_outputs_.push_back({tensor, std::move(gradient), memory});
}

void Tape::add_up(Value& sum, Value gradient) {
  if (!sum) {
    sum = std::move(gradient);
  } else if (sum.storage->use_count() == 1 && sum.is_dense()) {
    device().run(Add{sum.tensor(), gradient.tensor()});
  } else {
    Value both = new_like(device(), sum);
    device().run(AddBroadcast{.a = sum.rows(), .b = gradient.rows(), .out = both.rows()});
    sum = std::move(both);
  }
}

// The sum with a view is a third tensor for the time of the addition; it is written over the first,
// which moves the same bytes.
void Tape::add_up(Leaf& sum, Buffer gradient, Memory memory) {
  if (!sum.sum) {
    sum.sum = std::move(gradient);
    sum.memory = memory;
    return;
  }
  const Tensor both = sum.sum.tensor(work_->dtype);
  Buffer third;
  if (sum.memory == Memory::view) third = work_->gradient(both.numel);
  device().run(Add{both, gradient.tensor(work_->dtype)});
  sum.memory = Memory::own;
}

void Tape::hand_out(const NodeParameters& parameters) {
  for (Output& output : outputs_) {
    Node& node = *nodes_[output.node];
    node.is_reached = true;
    add_up(node.gradient, std::move(output.gradient));
  }
  outputs_.clear();
  for (ParameterOutput& output : parameter_outputs_) {
    add_up(leaf(output.tensor), std::move(output.gradient), output.memory);
  }
  parameter_outputs_.clear();
  for (const std::size_t tensor : parameters) {
    Leaf& own = leaf(tensor);
    if (--own.uses == 0 && own.sum) hooks_->gradient_ready(tensor, std::move(own.sum));
  }
}

void Tape::backward(std::size_t node, Value gradient) {
  nodes_.at(node)->gradient = std::move(gradient);
  nodes_.at(node)->is_reached = true;
  while (!nodes_.empty()) {
    NodePtr last = std::move(nodes_.back());
    nodes_.pop_back();
    if (last->is_reached) last->run(*this, std::move(last->gradient));
    const NodeParameters parameters = last->parameters;
    last.reset();
    hand_out(parameters);
  }
  clear();
}

}  // namespace dstune
