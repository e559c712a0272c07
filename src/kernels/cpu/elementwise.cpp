#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

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

void CpuDevice::fill_zero(Tensor out) {
  for_chunks(*this, out.numel, [=](std::int64_t begin, std::int64_t end) {
    const Tensor part = out.slice(begin, end - begin);
    std::memset(part.data, 0, part.size());
  });
}

void CpuDevice::copy(Tensor in, Tensor out) {
  assert(in.numel == out.numel && in.dtype == out.dtype);
  if (in.data == out.data) return;
  for_chunks(*this, in.numel, [=](std::int64_t begin, std::int64_t end) {
    const Tensor part = out.slice(begin, end - begin);
    std::memcpy(part.data, in.slice(begin, end - begin).data, part.size());
  });
}

void CpuDevice::cast(Tensor in, Tensor out) {
  assert(in.numel == out.numel);
  if (in.dtype == out.dtype) {
    copy(in, out);
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

void CpuDevice::scale(Tensor inout, double factor) {
  const auto f = static_cast<float>(factor);
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

void CpuDevice::add(Tensor inout, Tensor other) {
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

void CpuDevice::fill_constant(Tensor out, double value) {
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    const T element = from_float<T>(static_cast<float>(value));
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
  if (in.dtype == DType::fp64) {
    std::transform(elements<double>(in), elements<double>(in) + in.numel, values.begin(),
                   [](double value) { return static_cast<float>(value); });
    return;
  }
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    convert(elements<T>(in), values.data(), in.numel);
  });
}

}  // namespace dstune::cpu
