// The operations of forward that have a gradient, in order, and the way back through them:
// torch.autograd.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/operations/gemm.hpp"
#include "core/train/batch_context.hpp"
#include "core/train/module_hooks.hpp"
#include "core/train/tape/operator_calls.hpp"
#include "core/train/tape/pooled.hpp"
#include "core/train/tape/saved.hpp"
#include "core/train/tape/value.hpp"

namespace dstune {

/// The tensors, at most three, whose gradients a node gives beside those by its inputs.
class NodeParameters {
 public:
  NodeParameters() = default;
  NodeParameters(std::initializer_list<std::size_t> tensors) {
    for (const std::size_t tensor : tensors) add(tensor);
  }
  void add(std::size_t tensor) { tensors_.at(count_++) = static_cast<std::uint32_t>(tensor); }
  const std::uint32_t* begin() const { return tensors_.data(); }
  const std::uint32_t* end() const { return tensors_.data() + count_; }

 private:
  std::array<std::uint32_t, 3> tensors_{};
  std::uint32_t count_ = 0;
};

/// Whether a parameter's gradient has memory of its own. Autograd adds to a tensor in place, but
/// never to a view: the sum of a view with another gradient is a third tensor.
enum class Memory { own, view };

/// Nodes in the order in which forward made them. Backward takes them from the end, as autograd
/// takes the ready node with the highest sequence number (torch/csrc/autograd/engine.cpp, 2.9). A
/// node has one output. It takes the gradient by its output, gives those by its inputs, and is gone
/// with all it has saved before they are added up.
///
/// The gradient by a parameter goes to the hooks when all nodes that use the parameter have given
/// theirs, right behind the node that completes it: torch's AccumulateGrad, whose turn comes before
/// all others.
class Tape {
 public:
  Tape(const BatchContext& context, ModuleHooks& hooks) : context_(&context), hooks_(&hooks) {}
  /// The tape of a forward that runs again to fill `frame`: nothing is recorded.
  Tape(const BatchContext& context, ModuleHooks& hooks, CheckpointFrame& frame)
      : context_(&context), hooks_(&hooks), mode_(Mode::refills), frame_(&frame) {}
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  const BatchContext& context() const { return *context_; }
  ModuleHooks& hooks() const { return *hooks_; }
  Device& device() const { return *context_->device; }

  /// Runs an operation of the model on the device, whose host is then kept busy for as long as
  /// PyTorch's is with the ATen operators in its place.
  template <class Operation>
  void run(const Operation& operation, int calls = kOperatorCalls<Operation>) const {
    if constexpr (std::is_same_v<Operation, Gemm>) take_workspace(operation);
    const bool overlaps = device().overlaps();
    const Seconds begin = overlaps ? device().now() : 0;
    device().run(operation);
    count_operators(calls, overlaps ? device().now() - begin : 0);
  }
  /// Counts ATen operators beside those of run(), such as views.
  /// @param already  what of their time has passed
  void count_operators(int calls, Seconds already = 0) const {
    device().host_calls(operators_, static_cast<std::uint64_t>(calls), already);
  }

  /// torch.nn.Module.__call__ and DeepSpeed's hook in front of a module's forward.
  void call_module(std::size_t module) const {
    device().host_calls(HostEvent::module_call, 1);
    hooks_->fetch(module);
  }

  /// Whether an operation makes a node, given whether some of its operands need a gradient. Only
  /// then it saves values.
  bool records(bool needs_gradient) const { return needs_gradient && mode_ != Mode::forgets; }

  /// Whether a checkpoint's forward runs again, in which torch saves a detached copy of what needs
  /// a gradient.
  bool refills() const { return mode_ == Mode::refills; }

  /// Keeps a value for the node that comes next; called where torch's forward saves it.
  Saved save(const Value& value);

  /// Adds the node of an operation for which records() is true.
  /// @param parameters  whose gradients `backward` gives
  /// @param backward    (Tape&, Value d_out), which gives the gradients
  /// @returns `out` as its output
  template <class Backward>
  Value record(Value out, const NodeParameters& parameters, Backward&& backward) {
    out.node = add(parameters, std::forward<Backward>(backward));
    return out;
  }
  template <class Backward>
  Value record(Value out, Backward&& backward) {
    out.node = add({}, std::forward<Backward>(backward));
    return out;
  }

  /// Called by a node's backward: a part of the gradient by the output of node `node`. The first
  /// part becomes the sum, and the next is added in place if nobody else holds the sum (torch's
  /// InputBuffer).
  void give(std::size_t node, Value gradient);
  /// Called by a node's backward: a part of the gradient by a parameter, category gradients.
  void give(std::size_t tensor, Buffer gradient, Memory memory);

  /// Runs backward from `node`, whose output has the gradient `gradient` (empty: the gradient is a
  /// number that the node's backward knows).
  void backward(std::size_t node, Value gradient);

  /// torch.no_grad(): runs `body` without nodes.
  template <class Body>
  auto without_gradients(const Body& body) {
    const Scope<Mode> forgets(mode_, Mode::forgets);
    return body();
  }
  /// Runs `body` so that what it saves goes into `frame`.
  template <class Body>
  auto within(CheckpointFrame& frame, const Body& body) {
    const Scope<CheckpointFrame*> saves(frame_, &frame);
    return body();
  }

 private:
  enum class Mode { records, forgets, refills };

  /// Gives a member another value for as long as the scope lives.
  template <class T>
  class Scope {
   public:
    Scope(T& member, T value) : member_(member), before_(std::exchange(member, value)) {}
    ~Scope() { member_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    T& member_;
    T before_;
  };

  class Node : public Pooled {
   public:
    explicit Node(const NodeParameters& own) : parameters(own) {}
    virtual ~Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    virtual void run(Tape& tape, Value d_out) = 0;

    NodeParameters parameters;
    Value gradient;
    bool is_reached = false;
  };
  template <class Backward>
  class NodeOf final : public Node {
   public:
    template <class From>
    NodeOf(const NodeParameters& own, From&& backward)
        : Node(own), backward_(std::forward<From>(backward)) {}
    void run(Tape& tape, Value d_out) override { backward_(tape, std::move(d_out)); }

   private:
    Backward backward_;
  };
  /// The uses of a parameter whose gradients are still to come, and the sum of those that came.
  struct Leaf {
    std::size_t uses = 0;
    Buffer sum;
    Memory memory = Memory::own;
  };
  /// A gradient that the running node has given, which is to be added to what others gave before.
  struct Output {
    Node* node;
    Value gradient;
  };
  struct ParameterOutput {
    std::size_t tensor;
    Buffer gradient;
  };

  template <class Backward>
  std::size_t add(const NodeParameters& parameters, Backward&& backward) {
    if (mode_ == Mode::refills) return 0;  // needs a gradient, which this tape never gives
    using Made = NodeOf<std::decay_t<Backward>>;
    static_assert(alignof(Made) <= alignof(std::max_align_t));
    nodes_.emplace_back(new Made(parameters, std::forward<Backward>(backward)));
    for (const std::size_t tensor : parameters) ++leaf(tensor).uses;
    return nodes_.size() - 1;
  }
  void take_workspace(const Gemm& product) const {
    const bool runs_backward = operators_ == HostEvent::operator_backward || refills();
    context_->workspaces->multiply(runs_backward ? ProductThread::backward : ProductThread::forward,
                                   product.bias.has_value());
  }
  Leaf& leaf(std::size_t tensor);
  void add_up(Value& sum, Value& gradient);
  void add_up(Leaf& sum, Buffer gradient);
  void hand_out(const NodeParameters& parameters);
  void clear();

  const BatchContext* context_;
  ModuleHooks* hooks_;
  Mode mode_ = Mode::records;
  HostEvent operators_ = HostEvent::operator_forward;  ///< as which they are counted
  CheckpointFrame* frame_ = nullptr;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<Output> outputs_;
  std::vector<ParameterOutput> parameter_outputs_;
};

}  // namespace dstune
