#include "core/train/tape/tape.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

Tape::~Tape() { clear(); }

void Tape::clear() {
  while (!nodes_.empty()) nodes_.pop_back();  // later nodes may need earlier ones
  leaves_.clear();
}

Saved Tape::save(const Value& value) {
  if (mode_ == Mode::refills) {
    count_operators(1);  // torch.utils.checkpoint's detach()
    frame_->refill(value.detached());
    return {};
  }
  return frame_ == nullptr ? Saved(value.detached()) : frame_->save();
}

Tape::Leaf& Tape::leaf(std::size_t tensor) {
  if (tensor >= leaves_.size()) leaves_.resize(tensor + 1);
  return leaves_[tensor];
}

// The first gradient is no sum yet: it waits in its place.
void Tape::give(std::size_t node, Value gradient) {
  if (node == Value::kNoNode) return;
  Node& to = *nodes_[node];
  to.is_reached = true;
  if (!to.gradient) {
    to.gradient = std::move(gradient);
  } else {
    outputs_.push_back({&to, std::move(gradient)});
  }
}

void Tape::give(std::size_t tensor, Buffer gradient, Memory memory) {
  Leaf& to = leaf(tensor);
  if (!to.sum) {
    to.sum = std::move(gradient);
    to.memory = memory;
  } else {
    parameter_outputs_.push_back({tensor, std::move(gradient)});
  }
}

void Tape::add_up(Value& sum, Value& gradient) {
  if (sum.storage->use_count() == 1 && sum.is_dense()) {
    run(Add{sum.tensor(), gradient.tensor()});
  } else {
    Value both = new_like(device(), sum);
    run(AddBroadcast{.a = sum.rows(), .b = gradient.rows(), .out = both.rows()});
    sum = std::move(both);
  }
  gradient = {};
}

// The sum with a view is a third tensor for the time of the addition. It is written over the first
// one, which moves the same bytes.
void Tape::add_up(Leaf& sum, Buffer gradient) {
  const Tensor both = sum.sum.tensor(context_->dtype);
  Buffer third;
  if (sum.memory == Memory::view) third = context_->gradient(both.numel);
  run(Add{both, gradient.tensor(context_->dtype)});
  sum.memory = Memory::own;
}

void Tape::hand_out(const NodeParameters& parameters) {
  for (Output& output : outputs_) add_up(output.node->gradient, output.gradient);
  outputs_.clear();
  for (ParameterOutput& output : parameter_outputs_) {
    add_up(leaf(output.tensor), std::move(output.gradient));
  }
  parameter_outputs_.clear();
  for (const std::size_t tensor : parameters) {
    Leaf& own = leaf(tensor);
    if (--own.uses == 0 && own.sum) hooks_->gradient_ready(tensor, std::move(own.sum));
  }
}

void Tape::backward(std::size_t node, Value gradient) {
  operators_ = HostEvent::operator_backward;
  nodes_.at(node)->gradient = std::move(gradient);
  nodes_.at(node)->is_reached = true;
  while (!nodes_.empty()) {
    std::unique_ptr<Node> last = std::move(nodes_.back());
    nodes_.pop_back();
    if (last->is_reached) last->run(*this, std::move(last->gradient));
    const NodeParameters parameters = last->parameters;
    last.reset();
    hand_out(parameters);
  }
  clear();
}

}  // namespace dstune
