#include "core/train/layers/stacked_heads.hpp"

#include "core/device/operations/scale.hpp"
#include "core/device/operations/stack_heads.hpp"

namespace dstune::layers {

namespace {

Matrix stack_matrix(const Workspace& work, const AttentionShape& shape, const Buffer& stack) {
  return as_matrix(stack.tensor(work.dtype), shape.rows() * shape.heads, shape.head_size);
}

}  // namespace

Stack stack_of(const Workspace& work, const Buffer& buffer, std::int64_t rows,
               std::int64_t columns) {
  const std::int64_t count = rows * columns;
  return {as_matrix(buffer.tensor(work.dtype).slice(0, count), rows, columns), count};
}

void multiply(const Workspace& work, std::int64_t count, const Stack& a, Transpose transpose_a,
              const Stack& b, Transpose transpose_b, const Stack& c) {
  work.device->run(
      Gemm{.transpose_a = transpose_a,
           .transpose_b = transpose_b,
           .a = a.first,
           .b = b.first,
           .c = c.first,
           .batch = {.count = count, .a_step = a.step, .b_step = b.step, .c_step = c.step}});
}

Buffer new_stack(const Workspace& work, const AttentionShape& shape) {
  return work.activation(shape.heads * shape.head_size);
}

Buffer stacked(const Workspace& work, const AttentionShape& shape, const Heads& in,
               std::int64_t heads) {
  Buffer out = new_stack(work, shape);
  work.device->run(
      StackHeads{.shape = shape, .in = in, .heads = heads, .out = stack_matrix(work, shape, out)});
  return out;
}

void spread(const Workspace& work, const AttentionShape& shape, const Buffer& in, const Heads& out,
            std::int64_t heads) {
  work.device->run(
      SpreadHeads{.shape = shape, .in = stack_matrix(work, shape, in), .out = out, .heads = heads});
}

Buffer new_scores(const Workspace& work, const AttentionShape& shape, DType dtype) {
  return make_buffer(*work.device, MemoryCategory::activations,
                     shape.rows() * shape.heads * shape.sequence, dtype);
}

Buffer scaled(const Workspace& work, Buffer in, double factor) {
  const Tensor old = in.tensor(work.dtype);
  Buffer out = make_buffer(*work.device, MemoryCategory::activations, old.numel, work.dtype);
  work.device->run(ScaleTo{old, factor, out.tensor(work.dtype)});
  return out;
}

}  // namespace dstune::layers
