// torch.nn.Module and torch.utils.checkpoint on a tape.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/train/tape/tape.hpp"

namespace dstune {

/// How a module gets its input. DeepSpeed's hook behind the module's backward is attached to what
/// comes by place, and misses what comes by keyword.
enum class Passed { by_place, by_keyword };

/// DeepSpeed's hook in front of a module's backward, on the module's output (PreBackwardFunction).
Value before_backward(Tape& on, std::size_t module, const Value& output);
/// DeepSpeed's hook behind a module's backward, on the module's input (PostBackwardFunction). Where
/// the input needs no gradient, as token numbers, autograd never comes to the hook.
Value after_backward(Tape& on, std::size_t module, const Value& input);

/// Runs `body` (Value -> Value) as the forward of `module`, with DeepSpeed's hooks around it and
/// around its backward (deepspeed/runtime/zero/parameter_offload.py, 0.19.8).
template <class Body>
Value run_module(Tape& on, std::size_t module, Value x, const Body& body,
                 Passed passed = Passed::by_place) {
  on.call_module(module);
  if (passed == Passed::by_place) x = after_backward(on, module, x);
  const Value y = body(std::move(x));
  on.hooks().release(module);
  return before_backward(on, module, y);
}
/// Runs a module that gets no tensor that needs a gradient, or gets it by keyword. `body`: () ->
/// Value
template <class Body>
Value run_module(Tape& on, std::size_t module, const Body& body) {
  on.call_module(module);
  const Value y = body();
  on.hooks().release(module);
  return before_backward(on, module, y);
}
/// Runs `body` as the forward of a module, or without hooks if it is only a function.
template <class Body>
Value run_module(Tape& on, const std::optional<std::size_t>& module, Value x, const Body& body) {
  return module ? run_module(on, *module, std::move(x), body) : body(std::move(x));
}

/// The values that a part of a model gets by place and those that it gives: hidden states first,
/// and behind them what layers share. Some may be empty.
using Values = std::vector<Value>;
using Layer = std::function<Values(Tape&, Values)>;
using LayerOfOne = std::function<Value(Tape&, Value)>;  ///< a layer of hidden states alone

/// torch.utils.checkpoint.checkpoint(body, *in), as BatchContext::checkpointing says: of all that
/// `body` saves, only `in` is kept until backward comes to it. What `body` holds must outlive the
/// step, and gets no gradient. If `body` returns one of `in` unchanged in its place, that value
/// keeps its node.
Values checkpoint(Tape& on, const Values& in, Layer body);
Value checkpoint(Tape& on, const Value& x, LayerOfOne body);

/// The hidden states within what flows from layer to layer.
inline Value& hidden_of(Value& flow) { return flow; }
inline Value& hidden_of(Values& flow) { return flow.front(); }

/// Calls Device::tick() when backward comes to `x`, so that this rank answers whoever waits for it.
Value tick_in_backward(Tape& on, const Value& x);
/// The number of layers in one checkpoint, as BatchContext::checkpointing groups them; 0: it groups
/// none.
std::size_t layers_of_checkpoint(const Tape& on);
/// Whether the layer at `place` is a checkpoint within its module.
bool is_checkpoint(const Tape& on, std::size_t place);

/// Runs a model's layers, one behind the other, with checkpoints around groups of them where
/// BatchContext::checkpointing says so.
/// @param flow  Value or Values
/// @param run   (Tape&, std::size_t layer, Flow) -> Flow; what it holds must outlive the step
template <class Flow, class Run>
Flow run_layers(Tape& on, std::size_t count, Flow flow, const Run& run) {
  const auto part = [run](Tape& inner, std::size_t first, std::size_t end, Flow through) {
    for (std::size_t layer = first; layer < end; ++layer) {
      hidden_of(through) = tick_in_backward(inner, hidden_of(through));
      through = run(inner, layer, std::move(through));
      inner.device().tick();
    }
    return through;
  };
  const std::size_t together = layers_of_checkpoint(on);
  if (together == 0) return part(on, 0, count, std::move(flow));
  for (std::size_t first = 0; first < count; first += together) {
    const std::size_t end = std::min(first + together, count);
    flow = checkpoint(on, flow, [part, first, end](Tape& inner, Flow in) {
      return part(inner, first, end, std::move(in));
    });
  }
  return flow;
}

/// Runs a layer's module. With Unit::layer its body is a checkpoint: transformers wraps a layer's
/// forward (GradientCheckpointingLayer), so that the layer's own hooks do not run again. As with
/// checkpoint(), what the layer returns unchanged keeps its node.
/// @param place  index among the layers
Values run_layer(Tape& on, std::size_t module, std::size_t place, Values in, const Layer& body);
/// Runs a layer of hidden states alone, which the caller's variable holds until the layer has run.
/// `body`: (Tape&, Value) -> Value
template <class Body>
Value run_layer(Tape& on, std::size_t module, std::size_t place, const Value& x, const Body& body) {
  on.call_module(module);
  const Value in = after_backward(on, module, x);
  const Value out = is_checkpoint(on, place) ? checkpoint(on, in, body) : body(on, in);
  on.hooks().release(module);
  return before_backward(on, module, out);
}

}  // namespace dstune
