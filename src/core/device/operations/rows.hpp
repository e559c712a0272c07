// Rows copied from one matrix to another, and the sum of a vector.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// out = in, of any type, but the same in both. All rows of `in` may be one, with the stride 0.
struct CopyRows {
  Matrix in;
  Matrix out;
};

/// sum += factor * the sum of values
struct AddSum {
  Tensor values;  ///< fp32
  double factor = 1;
  Tensor sum;  ///< fp32, one element
};

inline Work work_of(const CopyRows& op) { return {"copy_rows", 0, {op.in}, {op.out}}; }
inline Work work_of(const AddSum& op) {
  return {"add_sum", count(op.values), {op.values, number(op.sum)}, {number(op.sum)}};
}

}  // namespace dstune
