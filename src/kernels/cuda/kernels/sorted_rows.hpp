// Rows in the order of their tokens.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/base/units.hpp"

namespace dstune::cuda {

/// Rows by token; those of one token stay in their order. Both of as many elements as there are
/// rows, in device memory.
struct SortedRows {
  const std::uint32_t* tokens = nullptr;
  const std::uint32_t* rows = nullptr;
};

/// One that numbers the rows, and CUB's: four, and two for each byte of a token.
constexpr int kMostSortLaunches = 13;

/// Queues a stable radix sort, by CUB.
/// @param tokens   int64 (rows), each below `vocab`, in device memory
/// @param scratch  where the result will be, of `scratch_size` bytes
/// @throws Error, if there is not enough scratch; CudaError, DeviceLostError
SortedRows sort_rows(cudaStream_t stream, const std::int64_t* tokens, std::int64_t rows,
                     std::int64_t vocab, std::uint32_t* scratch, Bytes scratch_size);

}  // namespace dstune::cuda
