#include "core/train/tape/modules.hpp"

#include <algorithm>

namespace dstune {
namespace {

using Body = std::function<Value(Tape&, Value)>;
using Unit = ActivationCheckpointing::Unit;

void synchronize(const Tape& on) {
  if (on.work().checkpoints_synchronize) on.device().host_sync(HostSync::timer);
}

// Of a stateless pass: its gradient is its output's.
template <class Hook>
Value pass(Tape& on, const Value& value, Hook hook) {
  if (!on.records(value.needs_gradient())) return value;
  return on.record(value, [hook, node = value.node](Tape& back, Value d) {
    hook(back);
    back.give(node, std::move(d));
  });
}

// torch.utils.checkpoint.CheckpointFunction: backward within backward, which holds what went in and
// came out until it is over. Where x needs no gradient, torch gives none to anything within:
// whoever trains something there has made it need one (enable_input_require_grads(), as PEFT does).
Value reentrant_checkpoint(Tape& on, const Value& x, Body body) {
  Value y = on.without_gradients([&] { return body(on, x.detached()); });
  if (!on.records(true)) return y;
  Saved saved = on.save(x);
  return on.record(std::move(y), [body = std::move(body), saved = std::move(saved), node = x.node](
                                     Tape& back, Value d_y) mutable {
    synchronize(back);
    Value d_x;
    {
      Tape inner(back.work(), back.hooks());
      const Value input =
          inner.record(saved.take(back), [&d_x](Tape&, Value d) { d_x = std::move(d); });
      const Value output = body(inner, input);
      inner.backward(output.node, d_y);
    }
    synchronize(back);
    back.give(node, std::move(d_x));
  });
}

Value other_checkpoint(Tape& on, const Value& x, const Body& body) {
  const bool needs_gradient = x.needs_gradient();
  const boost::intrusive_ptr<CheckpointFrame> frame(
      new CheckpointFrame([body, input = x.detached(), needs_gradient](Tape& again) {
        Value same = input;
        if (needs_gradient) same.node = 0;
        body(again, std::move(same));
      }));
  return on.within(*frame, [&] { return body(on, x); });
}

}  // namespace

Value before_backward(Tape& on, std::size_t module, const Value& output) {
  return pass(on, output, [module](Tape& back) { back.hooks().fetch(module); });
}

Value after_backward(Tape& on, std::size_t module, const Value& input) {
  return pass(on, input, [module](Tape& back) { back.hooks().release(module); });
}

Value checkpoint(Tape& on, Value x, Body body) {
  synchronize(on);
  Value y = on.work().checkpointing.reentrant ? reentrant_checkpoint(on, x, std::move(body))
                                              : other_checkpoint(on, x, body);
  synchronize(on);
  return y;
}

Value run_layers(Tape& on, std::size_t count, Value x,
                 const std::function<Value(Tape&, std::size_t, Value)>& run) {
  const ActivationCheckpointing& how = on.work().checkpointing;
  const bool grouped = how.unit == Unit::group;
  const std::size_t step = grouped ? static_cast<std::size_t>(how.count) : 1;
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t end = std::min(first + step, count);
    const Body part = [run, first, end](Tape& in, Value rows) {
      for (std::size_t layer = first; layer < end; ++layer) {
        rows = pass(in, rows, [](Tape& back) { back.device().tick(); });
        rows = run(in, layer, std::move(rows));
        in.device().tick();
      }
      return rows;
    };
    x = grouped ? checkpoint(on, std::move(x), part) : part(on, std::move(x));
  }
  return x;
}

Value run_layer(Tape& on, std::size_t module, std::size_t place, Value x, Body body) {
  const ActivationCheckpointing& how = on.work().checkpointing;
  const bool again = how.unit == Unit::layer && place % static_cast<std::size_t>(how.count) == 0;
  return run_module(on, module, std::move(x), [&](Value in) {
    return again ? checkpoint(on, std::move(in), body) : body(on, std::move(in));
  });
}

}  // namespace dstune
