#include <bit>

#include <cub/device/device_radix_sort.cuh>
#include <cuda_runtime.h>

#include "core/base/error.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/sorted_rows.hpp"

namespace dstune::cuda {

namespace {

/// A row's token, in 32 bits, and its number.
struct Enumerate {
  __device__ void operator()(std::int64_t i, std::int64_t token, std::uint32_t& key,
                             std::uint32_t& row) const {
    key = static_cast<std::uint32_t>(token);
    row = static_cast<std::uint32_t>(i);
  }
};

}  // namespace

SortedRows sort_rows(cudaStream_t stream, const std::int64_t* tokens, std::int64_t rows,
                     std::int64_t vocab, std::uint32_t* scratch, Bytes scratch_size) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(vocab - 1)));
  cub::DoubleBuffer<std::uint32_t> keys(scratch, scratch + rows);
  cub::DoubleBuffer<std::uint32_t> numbers(scratch + 2 * rows, scratch + 3 * rows);
  const auto sort = [&](void* temporary, Bytes size) {
    DSTUNE_CUDA_CHECK(
        cub::DeviceRadixSort::SortPairs(temporary, size, keys, numbers, rows, 0, bits, stream));
    return size;
  };
  const Bytes taken = static_cast<Bytes>(4 * rows) * sizeof(std::uint32_t);
  const Bytes needed = sort(nullptr, 0);
  if (taken + needed > scratch_size) {
    throw Error("embedding_backward: more tokens than scratch memory can sort");
  }
  for_each_element(stream, rows, Enumerate{}, In<std::int64_t>{tokens},
                   Out<std::uint32_t>{keys.Current()}, Out<std::uint32_t>{numbers.Current()});
  sort(scratch + 4 * rows, needed);
  return {keys.Current(), numbers.Current()};
}

}  // namespace dstune::cuda
