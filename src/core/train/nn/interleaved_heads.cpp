#include "core/train/nn/interleaved_heads.hpp"

#include <cstddef>
#include <utility>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/rows.hpp"
#include "core/train/nn/attention.hpp"

namespace dstune::nn {
namespace {

/// Of the parts, in the order of their columns.
struct PartGradients final : Counted {
  std::vector<Value> parts;
};

Value stack_of(const Value& x, std::int64_t heads, std::int64_t parts, std::int64_t part) {
  Value stack = x;
  stack.count = heads;
  stack.step = x.matrix.cols / heads;
  const std::int64_t size = stack.step / parts;
  stack.matrix = heads_in(x.matrix, part * size, 1, size).matrix;
  return stack;
}

// Rows of one head of one token.
Matrix head_rows(const Matrix& all, std::int64_t heads) {
  return {all.data, all.rows * heads, all.cols / heads, all.dtype, all.cols / heads};
}

}  // namespace

// Autograd has one node with several outputs; here each output is one, which only puts its gradient
// down for the node below.
std::vector<Value> chunk_heads(Tape& on, const Value& x, std::int64_t heads, std::int64_t parts) {
  const boost::intrusive_ptr<PartGradients> gradients(new PartGradients);
  Value base = x;
  if (on.records(x.needs_gradient())) {
    gradients->parts.resize(static_cast<std::size_t>(parts));
    base = on.record(x, [gradients, heads, node = x.node, rows = x.matrix.rows,
                         cols = x.matrix.cols](Tape& back, const Value&) {
      Value d_x = new_value(back.device(), gradients->parts.front().matrix.dtype, rows, cols);
      const auto count = static_cast<std::int64_t>(gradients->parts.size());
      for (std::int64_t part = 0; part < count; ++part) {
        const Matrix d = gradients->parts[static_cast<std::size_t>(part)].matrix;
        const Matrix in = head_rows(d, heads);
        Matrix out = stack_of(d_x, heads, count, part).matrix;
        out.rows = in.rows;
        out.stride = cols / heads;
        back.device().run(CopyRows{in, out});
      }
      gradients->parts.clear();
      back.give(node, std::move(d_x));
    });
  }
  std::vector<Value> out;
  for (std::int64_t part = 0; part < parts; ++part) {
    Value stack = stack_of(base, heads, parts, part);
    if (on.records(base.needs_gradient())) {
      stack = on.record(std::move(stack), [gradients, part, node = base.node](Tape& back, Value d) {
        gradients->parts[static_cast<std::size_t>(part)] = std::move(d);
        back.give(node, {});
      });
    }
    out.push_back(std::move(stack));
  }
  return out;
}

Value turn_heads(Tape& on, const layers::Rotary& rotary, const Value& x) {
  const std::int64_t size = x.matrix.cols;
  const Heads in = heads_of(x, x.count);
  Buffer turned = rotary.turn(on.work(), in.matrix, x.count, size, in.stride);
  Value out = value_of(std::move(turned), x.matrix.dtype, x.matrix.rows, x.count * size);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out), [&rotary, heads = x.count, size, node = x.node](Tape& back,
                                                                                   const Value& d) {
    Buffer straight = rotary.turn_back(back.work(), d.storage->buffer, heads, size);
    back.give(node, value_of(std::move(straight), d.matrix.dtype, d.matrix.rows, d.matrix.cols));
  });
}

}  // namespace dstune::nn
