// The values that flow through a model: memory that several may hold, and the node that made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"
#include "core/train/tape/counted.hpp"

namespace dstune {

/// One allocation, given back when the last Value that holds it goes.
struct Storage : Counted {
  explicit Storage(Buffer owned) : buffer(std::move(owned)) {}

  Buffer buffer;
};

/// The memory of a parameter, which its owner may let go of before that.
struct ParameterStorage final : Storage {
  explicit ParameterStorage(std::shared_ptr<const Buffer> shared)
      : Storage(Buffer()), parameter(std::move(shared)) {}

  std::shared_ptr<const Buffer> parameter;
};

using StoragePtr = boost::intrusive_ptr<Storage>;

/// torch's Tensor: `count` matrices in memory that other values may hold too. An empty one has no
/// memory.
struct Value {
  static constexpr std::size_t kNoNode = ~std::size_t{0};

  StoragePtr storage{};
  Matrix matrix{};         ///< the first
  std::int64_t count = 1;  ///< number of matrices
  std::int64_t step =
      0;  ///< elements from one matrix to the next; 0: there is one, or they are dense
  std::size_t node = kNoNode;  ///< the node whose output it is; kNoNode: it needs no gradient

  explicit operator bool() const { return storage != nullptr; }
  bool needs_gradient() const { return node != kNoNode; }
  bool is_dense() const {
    return matrix.stride == matrix.cols && (step == 0 || step == matrix.rows * matrix.cols);
  }
  std::int64_t numel() const { return count * matrix.rows * matrix.cols; }

  /// All elements of a dense value.
  Tensor tensor() const { return {matrix.data, numel(), matrix.dtype}; }
  /// All rows of a dense value: (count * rows, cols).
  Matrix rows() const { return as_matrix(tensor(), count * matrix.rows, matrix.cols); }
  /// The same memory without a gradient.
  Value detached() const {
    Value same = *this;
    same.node = kNoNode;
    return same;
  }
};

/// `buffer` as one dense matrix (rows, cols).
inline Value value_of(Buffer buffer, DType dtype, std::int64_t rows, std::int64_t cols) {
  const Matrix matrix = as_matrix(buffer.tensor(dtype), rows, cols);
  return {.storage = StoragePtr(new Storage(std::move(buffer))), .matrix = matrix};
}

/// A value in new memory, category activations; its contents are undefined.
inline Value new_value(Device& device, DType dtype, std::int64_t rows, std::int64_t cols) {
  return value_of(make_buffer(device, MemoryCategory::activations, rows * cols, dtype), dtype, rows,
                  cols);
}
/// A stack of `count` dense matrices.
inline Value new_stack(Device& device, DType dtype, std::int64_t count, std::int64_t rows,
                       std::int64_t cols) {
  Value stack = new_value(device, dtype, count * rows, cols);
  stack.matrix.rows = rows;
  stack.count = count;
  return stack;
}
/// A new dense value of another's shape.
inline Value new_like(Device& device, const Value& other) {
  return new_stack(device, other.matrix.dtype, other.count, other.matrix.rows, other.matrix.cols);
}

}  // namespace dstune
