#include "core/train/nn/rotary.hpp"

namespace dstune::nn {

Value turn(Tape& on, const layers::Rotary& rotary, const Value& x, std::int64_t heads) {
  const std::int64_t columns = x.matrix.cols;
  const std::int64_t size = columns / heads;
  Value out = value_of(rotary.turn(on.work(), x.matrix, heads, size, size), x.matrix.dtype,
                       x.matrix.rows, columns);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [&rotary, heads, size, node = x.node](Tape& back, Value d) {
    Buffer turned = rotary.turn_back(back.work(), d.storage->buffer, heads, size);
    back.give(node, value_of(std::move(turned), d.matrix.dtype, d.matrix.rows, d.matrix.cols));
  });
}

}  // namespace dstune::nn
