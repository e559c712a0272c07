// The work of an operation: its FLOPs, and the memory that it reads and writes.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "core/base/units.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Memory that an operation reads or writes.
struct Operand {
  const void* data;
  Bytes extent;  ///< bytes from the first to behind the last
  Bytes bytes;   ///< bytes that are read or written

  /// Members are undefined: to clear all of Operands would take longer than most dry operations.
  Operand() = default;
  Operand(const void* begin, Bytes size) : data(begin), extent(size), bytes(size) {}
  Operand(const Tensor& tensor)  // NOLINT(*-explicit-*)
      : Operand(tensor.data, tensor.size()) {}
  Operand(const Matrix& matrix)  // NOLINT(*-explicit-*)
      : data(matrix.data), extent(matrix.extent()), bytes(matrix.size()) {}

  /// The same operand, of which only `moved` bytes are read or written.
  Operand of(Bytes moved) const {
    Operand part = *this;
    part.bytes = moved;
    return part;
  }
};

/// A number that stays on the device, such as a sum, a flag or a factor. Its few bytes do not
/// count.
inline Operand number(const Tensor& tensor) { return Operand(tensor).of(0); }

/// The operands of all passes of an operation, one after the other: an operand that two passes read
/// is in the list twice.
class Operands {
 public:
  Operands() = default;
  Operands(std::initializer_list<Operand> operands) {
    for (const Operand& operand : operands) add(operand);
  }

  /// @throws std::out_of_range  if there are more operands than fit
  void add(const Operand& operand) { operands_.at(count_++) = operand; }
  void add(std::initializer_list<Operand> operands) {
    for (const Operand& operand : operands) add(operand);
  }

  const Operand* begin() const { return operands_.data(); }
  const Operand* end() const { return operands_.data() + count_; }

  Bytes bytes() const {
    Bytes sum = 0;
    for (const Operand& operand : *this) sum += operand.bytes;
    return sum;
  }

 private:
  static constexpr std::size_t kMost = 12;  // two for each of six passes

  std::array<Operand, kMost> operands_;
  std::size_t count_ = 0;
};

/// An operation as the ledger and devices without arithmetic see it: the result of
/// work_of(operation).
struct Work {
  std::string_view operation;  ///< its name, such as gemm
  /// Additions and multiplications; a transcendental counts as one.
  double flops = 0;
  Operands reads;
  Operands writes;

  Bytes read_bytes() const { return reads.bytes(); }
  Bytes written_bytes() const { return writes.bytes(); }
};

/// The number of elements, as a double to count FLOPs with.
inline double count(const Tensor& tensor) { return static_cast<double>(tensor.numel); }
inline double count(const Matrix& matrix) { return static_cast<double>(matrix.numel()); }

}  // namespace dstune
