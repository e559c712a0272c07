#include "core/train/tape/modules.hpp"

#include <algorithm>

namespace dstune {
namespace {

using Unit = ActivationCheckpointing::Unit;

void synchronize(const Tape& on) {
  if (on.context().checkpoints_synchronize) on.device().host_sync(HostSync::timer);
}

// A node that keeps nothing: it calls `hook`, and its gradient is its output's.
template <class Hook>
Value pass(Tape& on, const Value& value, Hook hook) {
  if (!on.records(value.needs_gradient())) return value;
  return on.record(value, [hook, node = value.node](Tape& back, Value d) {
    hook(back);
    back.give(node, std::move(d));
  });
}

// An output that is the input in the same place, unchanged, gets the input's node back.
void hand_through(const Values& in, Values& out) {
  for (std::size_t i = 0; i < std::min(in.size(), out.size()); ++i) {
    if (in[i] && in[i].storage == out[i].storage) out[i] = in[i];
  }
}

/// The gradients of the outputs of one node.
struct OutputGradients final : Counted {
  Values parts;
};

/// Makes `values` outputs of a node. Its backward, (Tape&, const Values& gradients), is called when
/// all outputs have their gradients, of which some may be empty. Each output is a node of its own,
/// which stores its gradient for that node.
template <class Backward>
void record_outputs(Tape& on, Values& values, Backward backward) {
  const boost::intrusive_ptr<OutputGradients> gradients(new OutputGradients);
  gradients->parts.resize(values.size());
  const std::size_t node =
      on.record({}, [gradients, backward = std::move(backward)](Tape& back, const Value&) mutable {
          backward(back, gradients->parts);
        }).node;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    values[i] = on.record(values[i], [gradients, i, node](Tape& back, Value d) {
      gradients->parts[i] = std::move(d);
      back.give(node, {});
    });
  }
}

/// Runs backward from all of `outputs` that have a gradient.
void go_back(Tape& on, const Values& outputs, const Values& gradients) {
  const Value all = on.record({}, [&](Tape& back, const Value&) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (gradients[i]) back.give(outputs[i].node, gradients[i]);
    }
  });
  on.backward(all.node, {});
}

// torch.utils.checkpoint.CheckpointFunction: backward within backward, which holds inputs and
// outputs until it is over. Where no input needs a gradient, torch gives none to anything within.
// The first input always counts as needing one here, since whoever trains something within has made
// it so (enable_input_require_grads(), as PEFT does).
Values reentrant_checkpoint(Tape& on, const Values& in, Layer body) {
  Values without = in;
  for (Value& value : without) value = value.detached();
  Values out = on.without_gradients([&] { return body(on, std::move(without)); });
  if (!on.records(true)) return out;
  std::vector<Saved> saved;
  std::vector<std::size_t> nodes;
  for (const Value& value : in) {
    saved.push_back(on.save(value));
    nodes.push_back(value.node);
  }
  record_outputs(on, out,
                 [body = std::move(body), saved = std::move(saved), nodes = std::move(nodes)](
                     Tape& back, const Values& d_out) mutable {
                   synchronize(back);
                   Values d_in(nodes.size());
                   {
                     Tape inner(back.context(), back.hooks());
                     Values inputs;
                     for (std::size_t i = 0; i < nodes.size(); ++i) {
                       inputs.push_back(saved[i].take(back));
                       if (i > 0 && nodes[i] == Value::kNoNode) continue;
                       inputs[i] = inner.record(inputs[i], [&d = d_in[i]](Tape&, Value gradient) {
                         d = std::move(gradient);
                       });
                     }
                     const Values outputs = body(inner, inputs);
                     go_back(inner, outputs, d_out);
                   }
                   synchronize(back);
                   for (std::size_t i = 0; i < nodes.size(); ++i) {
                     if (d_in[i]) back.give(nodes[i], std::move(d_in[i]));
                   }
                 });
  hand_through(in, out);
  return out;
}

Values other_checkpoint(Tape& on, const Values& in, const Layer& body) {
  const boost::intrusive_ptr<CheckpointFrame> frame(
      new CheckpointFrame([body, in](Tape& again) { body(again, in); }));
  return on.within(*frame, [&] { return body(on, in); });
}

/// A layer of hidden states alone as a layer of several values.
Layer several(LayerOfOne body) {
  return [body = std::move(body)](Tape& on, Values in) {
    return Values{body(on, std::move(in.front()))};
  };
}

}  // namespace

Value before_backward(Tape& on, std::size_t module, const Value& output) {
  return pass(on, output, [module](Tape& back) { back.hooks().fetch_for_backward(module); });
}

Value after_backward(Tape& on, std::size_t module, const Value& input) {
  return pass(on, input, [module](Tape& back) { back.hooks().release_after_backward(module); });
}

Values checkpoint(Tape& on, const Values& in, Layer body) {
  synchronize(on);
  Values out = on.context().checkpointing.reentrant ? reentrant_checkpoint(on, in, std::move(body))
                                                    : other_checkpoint(on, in, body);
  synchronize(on);
  return out;
}

Value checkpoint(Tape& on, const Value& x, LayerOfOne body) {
  return checkpoint(on, Values{x}, several(std::move(body))).front();
}

Value tick_in_backward(Tape& on, const Value& x) {
  return pass(on, x, [](Tape& back) { back.device().tick(); });
}

std::size_t layers_of_checkpoint(const Tape& on) {
  const ActivationCheckpointing& how = on.context().checkpointing;
  return how.unit == Unit::group ? static_cast<std::size_t>(how.count) : 0;
}

bool is_checkpoint(const Tape& on, std::size_t place) {
  const ActivationCheckpointing& how = on.context().checkpointing;
  return how.unit == Unit::layer && place % static_cast<std::size_t>(how.count) == 0;
}

// DeepSpeed's hook behind a module's backward runs when all that came by place has its gradient.
Values run_layer(Tape& on, std::size_t module, std::size_t place, Values in, const Layer& body) {
  on.call_module(module);
  const Values given = in;
  in[0] = after_backward(on, module, in[0]);
  for (std::size_t i = 1; i < in.size(); ++i) in[i] = pass(on, in[i], [](Tape&) {});
  Values out = is_checkpoint(on, place) ? checkpoint(on, in, body) : body(on, std::move(in));
  on.hooks().release(module);
  hand_through(given, out);
  out[0] = before_backward(on, module, out[0]);
  return out;
}

}  // namespace dstune
