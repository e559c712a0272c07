#include "mpi/collectives/combine.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "core/base/text.hpp"

namespace dstune {

namespace {

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

template <class Op>
void combine_elements(const double* other, double* into, std::int64_t count, Op op) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = op(into[i], other[i]);
}

template <class T, class Op>
void combine_elements(const T* other, T* into, std::int64_t count, Op op) {
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] = from_float<T>(op(to_float(into[i]), to_float(other[i])));
  }
}

template <class T>
void combine_as(ReduceOp op, Tensor other, Tensor into) {
  const auto* from = static_cast<const T*>(other.data);
  auto* to = static_cast<T*>(into.data);
  if (op == ReduceOp::sum) {
    combine_elements(from, to, into.numel, Sum{});
  } else {
    combine_elements(from, to, into.numel, Max{});
  }
}

void combine_flags(ReduceOp op, Tensor other, Tensor into) {
  if (op != ReduceOp::max) throw std::invalid_argument("uint8 tensors cannot be added up");
  const auto* from = static_cast<const std::uint8_t*>(other.data);
  auto* to = static_cast<std::uint8_t*>(into.data);
  for (std::int64_t i = 0; i < into.numel; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

void combine(ReduceOp op, Tensor other, Tensor into) {
  switch (into.dtype) {
    case DType::fp32:
      return combine_as<float>(op, other, into);
    case DType::bf16:
      return combine_as<BFloat16>(op, other, into);
    case DType::fp16:
      return combine_as<Float16>(op, other, into);
    case DType::uint8:
      return combine_flags(op, other, into);
    case DType::fp64:
      return combine_as<double>(op, other, into);
    case DType::int8:
    case DType::int64:
      throw std::invalid_argument(concat(name_of(into.dtype), " tensors are not combined"));
  }
}

}  // namespace dstune
