// Passes over all elements of tensors.
#include "core/device/operations/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/device/operations/activations.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

// Numbers, or a few of them: never tensors.
void add_doubles(Tensor inout, Tensor other) {
  for (std::int64_t i = 0; i < inout.numel; ++i) {
    elements<double>(inout)[i] += elements<double>(other)[i];
  }
}

}  // namespace

void CpuDevice::compute(const FillZero& op) {
  const Tensor out = op.out;
  for_chunks(*this, out.numel, [=](std::int64_t begin, std::int64_t end) {
    const Tensor part = out.slice(begin, end - begin);
    std::memset(part.data, 0, part.size());
  });
}

void CpuDevice::compute(const Copy& op) {
  const Tensor in = op.in;
  const Tensor out = op.out;
  assert(in.numel == out.numel && in.dtype == out.dtype);
  if (in.data == out.data) return;
  for_chunks(*this, in.numel, [=](std::int64_t begin, std::int64_t end) {
    const Tensor part = out.slice(begin, end - begin);
    std::memcpy(part.data, in.slice(begin, end - begin).data, part.size());
  });
}

void CpuDevice::compute(const Cast& op) {
  const Tensor in = op.in;
  const Tensor out = op.out;
  assert(in.numel == out.numel);
  if (in.dtype == out.dtype) {
    compute(Copy{in, out});
    return;
  }
  with_type(in.dtype, [&]<class From>(std::type_identity<From>) {
    with_type(out.dtype, [&]<class To>(std::type_identity<To>) {
      for_chunks(*this, in.numel, [=](std::int64_t begin, std::int64_t end) {
        convert(elements<From>(in) + begin, elements<To>(out) + begin, end - begin);
      });
    });
  });
}

void CpuDevice::compute(const Scale& op) {
  const Tensor inout = op.inout;
  const auto f = static_cast<float>(op.factor);
  with_type(inout.dtype, [&]<class T>(std::type_identity<T>) {
    T* const x = elements<T>(inout);
    for_chunks(*this, inout.numel, [=](std::int64_t begin, std::int64_t end) {
      transform_blocks(x, begin, end, [=](float* values, std::int64_t, std::int64_t count) {
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) values[i] *= f;
      });
    });
  });
}

void CpuDevice::compute(const ScaleTo& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  const auto f = static_cast<float>(op.factor);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const x = elements<T>(op.in);
    T* const y = elements<T>(op.out);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) y[i] = from_float<T>(to_float(x[i]) * f);
    });
  });
}

void CpuDevice::compute(const Add& op) {
  const Tensor inout = op.inout;
  const Tensor other = op.other;
  assert(inout.numel == other.numel && inout.dtype == other.dtype);
  if (inout.dtype == DType::fp64) return add_doubles(inout, other);
  with_type(inout.dtype, [&]<class T>(std::type_identity<T>) {
    T* const x = elements<T>(inout);
    const T* const y = elements<T>(other);
    for_chunks(*this, inout.numel, [=](std::int64_t begin, std::int64_t end) {
      transform_blocks(x, begin, end, [=](float* values, std::int64_t offset, std::int64_t count) {
        std::array<float, kBlockElements> buffer;  // NOLINT(*-member-init): written if it is read
        const float* const others = as_floats(y + offset, count, buffer.data());
#pragma omp simd
        for (std::int64_t i = 0; i < count; ++i) values[i] += others[i];
      });
    });
  });
}

void CpuDevice::compute(const FillConstant& op) {
  const Tensor out = op.out;
  if (out.dtype == DType::uint8) {
    std::memset(out.data, static_cast<std::uint8_t>(op.value), out.size());
    return;
  }
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    const T element = from_float<T>(static_cast<float>(op.value));
    for_chunks(*this, out.numel, [=](std::int64_t begin, std::int64_t end) {
      std::fill(elements<T>(out) + begin, elements<T>(out) + end, element);
    });
  });
}

void CpuDevice::write(std::span<const float> values, Tensor out) {
  assert(static_cast<std::int64_t>(values.size()) == out.numel);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    convert(values.data(), elements<T>(out), out.numel);
  });
}

void CpuDevice::read(Tensor in, std::span<float> values) {
  assert(static_cast<std::int64_t>(values.size()) == in.numel);
  if (in.dtype == DType::int8) {
    std::copy_n(elements<std::int8_t>(in), in.numel, values.begin());
    return;
  }
  if (in.dtype == DType::uint8) {
    std::copy_n(elements<std::uint8_t>(in), in.numel, values.begin());
    return;
  }
  if (in.dtype == DType::fp64) {
    std::transform(elements<double>(in), elements<double>(in) + in.numel, values.begin(),
                   [](double value) { return static_cast<float>(value); });
    return;
  }
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    convert(elements<T>(in), values.data(), in.numel);
  });
}

namespace {

float limit_of(Tensor flag) {
  assert(flag.dtype == DType::uint8 && flag.numel == 1);
  return *elements<std::uint8_t>(flag) != 0 ? kLargestBesideInfinite
                                            : std::numeric_limits<float>::infinity();
}

}  // namespace

void CpuDevice::compute(const Clamp& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  const float limit = limit_of(op.flag);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    T* const out = elements<T>(op.out);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = from_float<T>(std::clamp(to_float(in[i]), -limit, limit));
      }
    });
  });
}

void CpuDevice::compute(const ClampBackward& op) {
  assert(op.in.numel == op.d_out.numel && op.in.numel == op.d_in.numel);
  const float limit = limit_of(op.flag);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<T>(op.in);
    const T* const d_out = elements<T>(op.d_out);
    T* const d_in = elements<T>(op.d_in);
    for_chunks(*this, op.in.numel, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        d_in[i] = std::abs(to_float(in[i])) <= limit ? d_out[i] : from_float<T>(0);
      }
    });
  });
}

void CpuDevice::compute(const Multiply& op) {
  assert(op.a.numel == op.b.numel && op.a.numel == op.out.numel);
  assert(op.a.dtype == op.b.dtype && op.a.dtype == op.out.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const a = elements<T>(op.a);
    const T* const b = elements<T>(op.b);
    T* const out = elements<T>(op.out);
    for_chunks(*this, op.out.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) {
        out[i] = from_float<T>(to_float(a[i]) * to_float(b[i]));
      }
    });
  });
}

}  // namespace dstune::cpu
