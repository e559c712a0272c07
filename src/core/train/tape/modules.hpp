// torch.nn.Module and torch.utils.checkpoint on a tape.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/train/tape/tape.hpp"

namespace dstune {

/// How a module gets its input: DeepSpeed's hook behind the module's backward hangs on what comes
/// by place, and misses what comes by keyword.
enum class Passed { by_place, by_keyword };

/// DeepSpeed's hook in front of a module's backward, on its output (PreBackwardFunction).
Value before_backward(Tape& on, std::size_t module, const Value& output);
/// The one behind it, on its input (PostBackwardFunction): where that needs no gradient, such as
/// token numbers, autograd never comes to it.
Value after_backward(Tape& on, std::size_t module, const Value& input);

/// Runs `body` (Value -> Value) as the forward of `module`, with DeepSpeed's hooks around it and
/// around its backward (deepspeed/runtime/zero/parameter_offload.py, 0.19.8).
template <class Body>
Value run_module(Tape& on, std::size_t module, Value x, const Body& body,
                 Passed passed = Passed::by_place) {
  on.hooks().fetch(module);
  if (passed == Passed::by_place) x = after_backward(on, module, x);
  const Value y = body(std::move(x));
  on.hooks().release(module);
  return before_backward(on, module, y);
}
/// Likewise what gets no tensor that needs a gradient, or gets it by keyword. `body`: () -> Value
template <class Body>
Value run_module(Tape& on, std::size_t module, const Body& body) {
  on.hooks().fetch(module);
  const Value y = body();
  on.hooks().release(module);
  return before_backward(on, module, y);
}
/// A function, or a module.
template <class Body>
Value run_module(Tape& on, const std::optional<std::size_t>& module, Value x, const Body& body) {
  return module ? run_module(on, *module, std::move(x), body) : body(std::move(x));
}

/// What a part of a model is given by place, and what it gives: hidden states first, and behind
/// them what layers share. Some may be empty.
using Values = std::vector<Value>;
using Layer = std::function<Values(Tape&, Values)>;
using LayerOfOne = std::function<Value(Tape&, Value)>;  ///< of hidden states alone

/// torch.utils.checkpoint.checkpoint(body, *in), as BatchContext::checkpointing says: of what
/// `body` saves, `in` alone is kept until backward comes to it. What `body` holds must outlive the
/// step, and has no gradient. Of `in`, what `body` returns in its place as it was keeps its node.
Values checkpoint(Tape& on, const Values& in, Layer body);
Value checkpoint(Tape& on, Value x, LayerOfOne body);

/// A model's layers, one behind the other, with checkpoints around groups of them where
/// BatchContext::checkpointing says so. `run`: (Tape&, std::size_t layer, Values in) -> Values
Values run_layers(Tape& on, std::size_t count, Values in,
                  const std::function<Values(Tape&, std::size_t, Values)>& run);
Value run_layers(Tape& on, std::size_t count, Value x,
                 const std::function<Value(Tape&, std::size_t, Value)>& run);

/// A layer's module. With Unit::layer its body is a checkpoint: transformers wraps a layer's
/// forward (GradientCheckpointingLayer), so that its own hooks do not run again. As checkpoint()'s,
/// what it returns as it was keeps its node.
/// @param place  among the layers
Values run_layer(Tape& on, std::size_t module, std::size_t place, Values in, const Layer& body);
Value run_layer(Tape& on, std::size_t module, std::size_t place, Value x, LayerOfOne body);

}  // namespace dstune
