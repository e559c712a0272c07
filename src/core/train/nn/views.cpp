#include "core/train/nn/views.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::nn {
namespace {

/// The gradients of the parts of a split, in the order of their columns.
struct SplitGradients final : Counted {
  std::vector<Value> parts;
};

Matrix columns(const Matrix& all, std::int64_t first, std::int64_t count) {
  Matrix part = all;
  part.cols = count;
  if (all.data != nullptr) {
    part.data =
        static_cast<std::byte*>(all.data) + first * static_cast<std::int64_t>(size_of(all.dtype));
  }
  return part;
}

/// A matrix with one row for each head of a token.
Matrix by_heads(const Matrix& all, std::int64_t heads) {
  return {all.data, all.rows * heads, all.cols / heads, all.dtype, all.stride / heads};
}

Value dense(const Tape& on, const Value& view) {
  Value out = new_value(on.device(), view.matrix.dtype, view.matrix.rows, view.matrix.cols);
  on.run(CopyRows{view.matrix, out.matrix});
  out.node = view.node;
  return out;
}

/// The `part`-th of `count` parts of each head.
Value part_of(const Value& x, std::int64_t heads, std::int64_t count, std::int64_t part) {
  Value view = x;
  const std::int64_t width = x.matrix.cols / heads / count;
  view.matrix = columns(x.matrix, part * width, width);
  if (heads == 1) return view;
  view.count = heads;
  view.step = x.matrix.cols / heads;
  return view;
}

// Autograd has one node with several outputs. Here each output is a node, which only stores its
// gradient for the node that they share.
std::vector<Value> split(Tape& on, const Value& x, std::int64_t heads, std::int64_t count,
                         Parts parts) {
  const boost::intrusive_ptr<SplitGradients> gradients(new SplitGradients);
  gradients->parts.resize(static_cast<std::size_t>(count));
  on.count_operators(1);
  Value base = x;
  if (on.records(x.needs_gradient())) {
    base =
        on.record(x, [gradients, heads, node = x.node, of_x = x.matrix](Tape& back, const Value&) {
          Value d_x = new_value(back.device(), of_x.dtype, of_x.rows, of_x.cols);
          const Matrix all = by_heads(d_x.matrix, heads);
          std::int64_t first = 0;
          for (const Value& d : gradients->parts) {
            const Matrix in = by_heads(d.matrix, heads);
            back.run(CopyRows{in, columns(all, first, in.cols)});
            first += in.cols;
          }
          gradients->parts.clear();
          back.give(node, std::move(d_x));
        });
  }
  std::vector<Value> out;
  for (std::int64_t part = 0; part < count; ++part) {
    Value view = part_of(base, heads, count, part);
    if (parts == Parts::dense) view = dense(on, view);
    if (on.records(base.needs_gradient())) {
      view = on.record(std::move(view), [gradients, part, node = base.node](Tape& back, Value d) {
        gradients->parts[static_cast<std::size_t>(part)] = std::move(d);
        back.give(node, {});
      });
    }
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace

std::vector<Value> split(Tape& on, const Value& x, std::int64_t count, Parts parts) {
  return split(on, x, 1, count, parts);
}

std::vector<Value> split_heads(Tape& on, const Value& x, std::int64_t heads, std::int64_t count) {
  return split(on, x, heads, count, Parts::views);
}

Value slice(Tape& on, const Value& x, std::int64_t first, std::int64_t count) {
  on.count_operators(1);
  Value view = x;
  view.matrix = columns(x.matrix, first, count);
  if (!on.records(x.needs_gradient())) return view;
  return on.record(std::move(view), [first, count, width = x.matrix.cols, node = x.node](
                                        Tape& back, const Value& d) {
    Value whole = new_value(back.device(), d.matrix.dtype, d.matrix.rows, width);
    back.run(FillZero{whole.tensor()});
    back.run(CopyRows{d.matrix, columns(whole.matrix, first, count)});
    back.count_operators(1);  // the zeros
    back.give(node, std::move(whole));
  });
}

Value reshape(Tape& on, const Value& x, std::int64_t rows, std::int64_t cols) {
  Value view = x;
  view.matrix = as_matrix(x.tensor(), rows, cols);
  if (!on.records(x.needs_gradient())) return view;
  return on.record(std::move(view), [before = x.matrix, node = x.node](Tape& back, Value d) {
    d.matrix = as_matrix(d.tensor(), before.rows, before.cols);
    back.give(node, std::move(d));
  });
}

Value copy(Tape& on, const Value& x) {
  Value out = new_like(on.device(), x);
  on.run(Copy{x.tensor(), out.tensor()});
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out),
                   [node = x.node](Tape& back, Value d) { back.give(node, std::move(d)); });
}

Value hold(Tape& on, const Value& x, const Value& other) {
  if (!on.records(x.needs_gradient())) return x;
  return on.record(x, [node = x.node, kept = on.save(other)](Tape& back, Value d) mutable {
    kept.take(back);
    back.give(node, std::move(d));
  });
}

Value cast(Tape& on, const Value& x, DType to) {
  const auto as = [](const Tape& in, const Value& from, DType dtype) {
    Value out = new_stack(in.device(), dtype, from.count, from.matrix.rows, from.matrix.cols);
    in.run(Cast{from.tensor(), out.tensor()});
    return out;
  };
  if (x.matrix.dtype == to) return x;
  Value out = as(on, x, to);
  if (!on.records(x.needs_gradient())) return out;
  return on.record(std::move(out),
                   [as, from = x.matrix.dtype, node = x.node](Tape& back, const Value& d) {
                     back.give(node, as(back, d, from));
                   });
}

}  // namespace dstune::nn
