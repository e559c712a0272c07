// torch's loops over host tensors.
#include "core/device/operations/elementwise.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/element_types.hpp"
#include "kernels/host/chunks.hpp"
#include "kernels/host/loops.hpp"
#include "kernels/host/passes.hpp"

namespace dstune::host {
namespace {

/// x[i] *= factor for `count` elements, rounded once.
template <class T>
void scale(InstructionSet set, T* x, std::int64_t count, float factor) {
  if constexpr (std::is_same_v<T, float>) {
    loop(set, 0, count, [=](std::int64_t i) { x[i] *= factor; });
  } else {
    constexpr std::int64_t kBlock = 1024;  // stays in the first cache
    std::array<float, kBlock> values;      // NOLINT(*-member-init): written by convert()
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      const std::int64_t size = std::min(kBlock, count - begin);
      convert(set, x + begin, values.data(), size);
      scale(set, values.data(), size, factor);
      convert(set, values.data(), x + begin, size);
    }
  }
}

std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

void fill_bytes(Threads& threads, Tensor out, std::uint8_t byte, const PassOptions& options) {
  for_chunks(threads, options, out.numel, bytes_of(out.dtype),
             [=](std::int64_t begin, std::int64_t end) {
               const Tensor part = out.slice(begin, end - begin);
               std::memset(part.data, byte, part.size());
             });
}

}  // namespace

void compute(Threads& threads, const Scale& op, const PassOptions& options) {
  const auto factor = static_cast<float>(op.factor);
  with_type(op.inout.dtype, [&]<class T>(std::type_identity<T>) {
    T* const x = elements<T>(op.inout);
    for_chunks(threads, options, op.inout.numel, 2 * bytes_of(op.inout.dtype),
               [=, set = options.instructions](std::int64_t begin, std::int64_t end) {
                 scale(set, x + begin, end - begin, factor);
               });
  });
}

void compute(Threads& threads, const Cast& op, const PassOptions& options) {
  assert(op.in.numel == op.out.numel);
  if (op.in.dtype == op.out.dtype) return compute(threads, Copy{op.in, op.out}, options);
  with_type(op.in.dtype, [&]<class From>(std::type_identity<From>) {
    with_type(op.out.dtype, [&]<class To>(std::type_identity<To>) {
      if constexpr (!std::is_same_v<From, To>) {
        const From* const in = elements<From>(op.in);
        To* const out = elements<To>(op.out);
        for_chunks(threads, options, op.in.numel, bytes_of(op.in.dtype) + bytes_of(op.out.dtype),
                   [=, set = options.instructions](std::int64_t begin, std::int64_t end) {
                     convert(set, in + begin, out + begin, end - begin);
                   });
      }
    });
  });
}

void compute(Threads& threads, const Copy& op, const PassOptions& options) {
  const Tensor in = op.in;
  const Tensor out = op.out;
  assert(in.numel == out.numel && in.dtype == out.dtype);
  if (in.data == out.data) return;
  for_chunks(threads, options, in.numel, 2 * bytes_of(in.dtype),
             [=](std::int64_t begin, std::int64_t end) {
               const Tensor part = out.slice(begin, end - begin);
               std::memcpy(part.data, in.slice(begin, end - begin).data, part.size());
             });
}

void compute(Threads& threads, const FillZero& op, const PassOptions& options) {
  fill_bytes(threads, op.out, 0, options);
}

void compute(Threads& threads, const FillConstant& op, const PassOptions& options) {
  if (op.out.dtype == DType::uint8) {
    return fill_bytes(threads, op.out, static_cast<std::uint8_t>(op.value), options);
  }
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    T* const out = elements<T>(op.out);
    const T element = from_float<T>(static_cast<float>(op.value));
    for_chunks(
        threads, options, op.out.numel, bytes_of(op.out.dtype),
        [=](std::int64_t begin, std::int64_t end) { std::fill(out + begin, out + end, element); });
  });
}

}  // namespace dstune::host
