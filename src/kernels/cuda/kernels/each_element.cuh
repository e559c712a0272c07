// Operations that take every element by itself: one pass over memory for any number of operands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

/// One of the tensors that an operation goes through side by side.
template <class T, bool reads, bool writes>
struct Access {
  using Element = T;
  static constexpr bool kReads = reads;
  static constexpr bool kWrites = writes;

  T* data = nullptr;
};

template <class T>
struct In : Access<const T, true, false> {};
template <class T>
struct Out : Access<T, false, true> {};
template <class T>
struct InOut : Access<T, true, true> {};

/// What an operation sees of an element: floats whatever the storage, other types as they are.
template <class T>
using ValueOf =
    std::conditional_t<std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>, float, T>;

/// Some packs of an operand in a thread's registers.
template <class Operand, int kWidth, int kPacks>
struct Held {
  using T = std::remove_const_t<typename Operand::Element>;

  Operand operand;
  Pack<T, kWidth> packs[kPacks];
  ValueOf<T> values[kWidth];  // of the pack that is worked on

  __device__ explicit Held(const Operand& own) : operand(own) {}

  __device__ void load(int p, std::int64_t i) {
    if constexpr (Operand::kReads) packs[p] = load_pack<kWidth>(operand.data + i);
  }
  __device__ void open(int p) {
    if constexpr (Operand::kReads) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if constexpr (std::is_same_v<T, ValueOf<T>>) {
          values[k] = packs[p].values[k];
        } else {
          values[k] = to_float(packs[p].values[k]);
        }
      }
    }
  }
  __device__ void store(int p, std::int64_t i) {
    if constexpr (Operand::kWrites) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if constexpr (std::is_same_v<T, ValueOf<T>>) {
          packs[p].values[k] = values[k];
        } else {
          packs[p].values[k] = from_float<T>(values[k]);
        }
      }
      store_pack(operand.data + i, packs[p]);
    }
  }
};

// All loads come first: the compiler may not move one before a store.
template <int kWidth, int kPacks, class F, class... Operands>
__device__ inline void do_packs(std::int64_t first, std::int64_t step, std::int64_t end, F& f,
                                Held<Operands, kWidth, kPacks>... held) {
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t i = first + p * step;
    if (i < end) (held.load(p, i), ...);
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t i = first + p * step;
    if (i >= end) return;
    (held.open(p), ...);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) f(i + k, held.values[k]...);
    (held.store(p, i), ...);
  }
}

constexpr int kElementThreads = 256;

template <int kWidth, int kPacks, class F, class... Operands>
__global__ void __launch_bounds__(kElementThreads)
    each_element_kernel(std::int64_t count, F f, Operands... operands) {
  constexpr std::int64_t kStep = std::int64_t{kElementThreads} * kWidth;
  const std::int64_t whole = count - count % kWidth;
  for (std::int64_t begin = blockIdx.x * kStep * kPacks; begin < whole;
       begin += gridDim.x * kStep * kPacks) {
    do_packs<kWidth, kPacks>(begin + threadIdx.x * kWidth, kStep, whole, f,
                             Held<Operands, kWidth, kPacks>(operands)...);
  }
  if constexpr (kWidth > 1) {
    if (blockIdx.x == 0) {
      do_packs<1, 1>(whole + threadIdx.x, 1, count, f, Held<Operands, 1, 1>(operands)...);
    }
  }
  if constexpr (requires { f.finish(); }) f.finish();
}

/// Bytes that a thread asks for before it waits: enough of them hide the memory's latency.
constexpr int kBytesInFlight = 64;

template <int kWidth, class... Operands>
constexpr int packs_in_flight() {
  const int bytes =
      (0 + ... + (Operands::kReads ? kWidth * int{sizeof(typename Operands::Element)} : 0));
  return std::clamp(kBytesInFlight / std::max(bytes, 1), 1, 4);
}

/// f(i, values...) for every i below `count`, with one value of each operand, which f takes by
/// reference where it writes: the float that stands for a 16-bit element, or the element itself.
/// All values are read before any is written, so operands may be the same tensor.
///
/// f is a device functor, copied into each thread. If it has a finish(), every thread calls that at
/// its end: there a block may reduce what its threads have kept, for which `most_blocks` bounds the
/// number of blocks.
///
/// @returns the number of blocks; it depends on `count`, `most_blocks` and the operands' types and
///          alignment alone
template <class F, class... Operands>
std::int64_t for_each_element(cudaStream_t stream, std::int64_t count, std::int64_t most_blocks,
                              const F& f, const Operands&... operands) {
  constexpr int kWidth = kPackWidth<typename Operands::Element...>;
  const auto start = [&]<int kOwnWidth, int kPacks>(std::integer_sequence<int, kOwnWidth, kPacks>) {
    Grid grid = cover(count, kElementThreads, kOwnWidth * kPacks);
    grid.blocks = std::min(grid.blocks, most_blocks);
    launch(stream, grid, each_element_kernel<kOwnWidth, kPacks, F, Operands...>, count, f,
           operands...);
    return grid.blocks;
  };
  if ((is_aligned<kWidth>(operands.data) && ...)) {
    return start(std::integer_sequence<int, kWidth, packs_in_flight<kWidth, Operands...>()>{});
  }
  return start(std::integer_sequence<int, 1, 4>{});
}

/// The same, with as many blocks as cover the elements.
template <class F, class... Operands>
void for_each_element(cudaStream_t stream, std::int64_t count, const F& f,
                      const Operands&... operands) {
  for_each_element(stream, count, std::int64_t{0x7fffffff}, f, operands...);
}

// What is read of an element waits for the store of the one before, which might have changed it.
template <bool kFew, int kElements, class F, class... Operands>
__global__ void __launch_bounds__(kElementThreads)
    single_elements_kernel(std::int64_t count, F f, Operands... operands) {
  const std::int64_t begin = std::int64_t{blockIdx.x} * kElementThreads * kElements;
#pragma unroll
  for (int k = 0; k < kElements; ++k) {
    const std::int64_t i = begin + k * kElementThreads + threadIdx.x;
    if (i >= count) return;
    // Divisions then take no branch, before which the compiler would wait for what is loaded.
    if (kFew && i >= Divisor::kLimit) __builtin_unreachable();
    do_packs<1, 1>(i, 1, count, f, Held<Operands, 1, 1>(operands)...);
  }
}

/// The same, but a thread takes four elements one after another, two where the result has 4 bytes,
/// each beside its neighbour's: so do PyTorch's kernels where an operand is not contiguous, or
/// stands for many (gpu_kernel_impl_nocast in ATen/native/cuda/CUDALoops.cuh), and take longer for
/// it than packs would.
template <class F, class... Operands>
void for_single_elements(cudaStream_t stream, std::int64_t count, const F& f,
                         const Operands&... operands) {
  constexpr bool is_wide =
      (false || ... || (Operands::kWrites && sizeof(typename Operands::Element) >= 4));
  constexpr int kElements = is_wide ? 2 : 4;
  launch(stream, cover(count, kElementThreads, kElements),
         count <= Divisor::kLimit ? single_elements_kernel<true, kElements, F, Operands...>
                                  : single_elements_kernel<false, kElements, F, Operands...>,
         count, f, operands...);
}

}  // namespace dstune::cuda
