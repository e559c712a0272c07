// Radix sort by bytes. A warp has kSegment rows, which it takes in order: for each byte it counts
// its rows per value, one block turns the counts into places, and the warps move their rows there.
#include <algorithm>
#include <bit>
#include <utility>

#include <cuda_runtime.h>

#include "core/base/error.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/sorted_rows.hpp"

namespace dstune::cuda {

namespace {

constexpr std::int64_t kSegment = 512;
constexpr int kBits = 8;
constexpr int kValues = 1 << kBits;
constexpr int kMostThreads = 1024;
constexpr unsigned kAll = 0xffffffffU;

struct Pairs {
  std::uint32_t* tokens;
  std::uint32_t* rows;
};

__device__ inline std::uint32_t digit_of(std::uint32_t token, int shift) {
  return token >> static_cast<unsigned>(shift) & (kValues - 1U);
}

/// The lanes below this one with its digit; absent lanes are different from all others.
struct Equals {
  unsigned below;
  unsigned all;

  __device__ Equals(std::uint32_t digit, bool exists) : all(__ballot_sync(kAll, exists)) {
#pragma unroll
    for (int bit = 0; bit < kBits; ++bit) {
      const bool is_set = (digit >> static_cast<unsigned>(bit) & 1U) != 0;
      const unsigned set = __ballot_sync(kAll, is_set);
      all &= is_set ? set : ~set;
    }
    below = all & ((1U << threadIdx.x) - 1U);
  }
};

/// f(digit, equal lanes, the row or `rows`) for the segment of this warp, 32 rows at a time.
template <class F>
__device__ void for_segment(const std::uint32_t* tokens, std::int64_t rows, int shift, F f) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kSegment;
  const std::int64_t end = min(first + kSegment, rows);
  for (std::int64_t i = first + threadIdx.x; i - threadIdx.x < end; i += kWarp) {
    const bool exists = i < end;
    const std::uint32_t digit = exists ? digit_of(tokens[i], shift) : 0;
    f(digit, Equals(digit, exists), exists ? i : rows);
    __syncwarp();
  }
}

__global__ void take_kernel(const std::int64_t* tokens, std::int64_t rows, Pairs out) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  out.tokens[i] = static_cast<std::uint32_t>(tokens[i]);
  out.rows[i] = static_cast<std::uint32_t>(i);
}

/// places (values, segments)
__global__ void count_kernel(const std::uint32_t* tokens, std::int64_t rows, int shift,
                             std::uint32_t* places) {
  __shared__ std::uint32_t counts[kValues];
  for (unsigned value = threadIdx.x; value < kValues; value += kWarp) counts[value] = 0;
  __syncwarp();
  for_segment(tokens, rows, shift, [&](std::uint32_t digit, Equals equals, std::int64_t i) {
    if (i < rows && equals.below == 0) counts[digit] += static_cast<unsigned>(__popc(equals.all));
  });
  for (unsigned value = threadIdx.x; value < kValues; value += kWarp) {
    places[std::int64_t{value} * gridDim.x + blockIdx.x] = counts[value];
  }
}

/// Each count becomes the sum of those before it. One block; each thread has a stretch.
__global__ void __launch_bounds__(kMostThreads)
    add_up_kernel(std::uint32_t* places, std::int64_t count) {
  __shared__ std::uint32_t of_threads[kMostThreads];
  const std::int64_t stretch = (count + blockDim.x - 1) / blockDim.x;
  const std::int64_t first = threadIdx.x * stretch;
  const std::int64_t end = min(first + stretch, count);
  std::uint32_t own = 0;
  for (std::int64_t i = first; i < end; ++i) own += places[i];
  of_threads[threadIdx.x] = own;
  for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
    __syncthreads();
    const std::uint32_t before = threadIdx.x >= distance ? of_threads[threadIdx.x - distance] : 0;
    __syncthreads();
    of_threads[threadIdx.x] += before;
  }
  std::uint32_t sum = of_threads[threadIdx.x] - own;
  for (std::int64_t i = first; i < end; ++i) sum += std::exchange(places[i], sum);
}

__global__ void move_kernel(Pairs from, std::int64_t rows, int shift, const std::uint32_t* places,
                            Pairs to) {
  __shared__ std::uint32_t next[kValues];
  for (unsigned value = threadIdx.x; value < kValues; value += kWarp) {
    next[value] = places[std::int64_t{value} * gridDim.x + blockIdx.x];
  }
  __syncwarp();
  for_segment(from.tokens, rows, shift, [&](std::uint32_t digit, Equals equals, std::int64_t i) {
    const std::uint32_t first = next[digit];
    __syncwarp();
    if (i >= rows) return;
    if (equals.below == 0) next[digit] = first + static_cast<unsigned>(__popc(equals.all));
    const std::uint32_t place = first + static_cast<unsigned>(__popc(equals.below));
    to.tokens[place] = from.tokens[i];
    to.rows[place] = from.rows[i];
  });
}

}  // namespace

SortedRows sort_rows(cudaStream_t stream, const std::int64_t* tokens, std::int64_t rows,
                     std::int64_t vocab, std::uint32_t* scratch, Bytes scratch_size) {
  const std::int64_t segments = (rows + kSegment - 1) / kSegment;
  if (static_cast<Bytes>(4 * rows + segments * kValues) * sizeof(std::uint32_t) > scratch_size) {
    throw Error("embedding_backward: more tokens than scratch memory can sort");
  }
  Pairs from{scratch, scratch + rows};
  Pairs to{scratch + 2 * rows, scratch + 3 * rows};
  std::uint32_t* const places = scratch + 4 * rows;
  const int threads = static_cast<int>(std::min<std::int64_t>(segments * kWarp, kMostThreads));
  launch(stream, cover(rows, kMostThreads / 4), take_kernel, tokens, rows, from);
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vocab - 1)));
  for (int shift = 0; shift < bits; shift += kBits) {
    launch(stream, {segments, kWarp}, count_kernel, from.tokens, rows, shift, places);
    launch(stream, {1, threads}, add_up_kernel, places, segments * kValues);
    launch(stream, {segments, kWarp}, move_kernel, from, rows, shift, places, to);
    std::swap(from, to);
  }
  return {from.tokens, from.rows};
}

}  // namespace dstune::cuda
