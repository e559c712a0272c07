// Errors of the CUDA run time.
#pragma once

#include <cuda_runtime_api.h>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "core/device/faults.hpp"

namespace dstune::cuda {

/// A call failed that may succeed the next time. The message says the call, CUDA's name and text of
/// the error, and where.
class CudaError : public Error {
 public:
  using Error::Error;
};

/// The program was not compiled for this GPU: nothing will ever run there. The message says
/// which kind that is and what it takes.
class NoCodeError : public CudaError {
 public:
  using CudaError::CudaError;
};

/// True if `error` stays until the process ends: each later call returns it.
bool is_sticky(cudaError_t error) noexcept;

/// The size where CUDA does not say how much it asked for.
constexpr Bytes kUnknownSize = 0;

/// The GPU itself is full.
/// @throws OutOfMemoryError
[[noreturn]] void throw_out_of_memory(Bytes requested);

/// Does nothing if `error` is none. What the run time remembers of it is cleared, so that the next
/// check does not see it again.
/// @throws DeviceLostError   if it is sticky
/// @throws OutOfMemoryError  if it is that of a GPU that is full, whatever the call
/// @throws NoCodeError       if the program has no code for the GPU
/// @throws CudaError         else
void check(cudaError_t error, const char* call, const char* file, int line);

}  // namespace dstune::cuda

/// check() of a call, with its text and place.
#define DSTUNE_CUDA_CHECK(call) ::dstune::cuda::check((call), #call, __FILE__, __LINE__)
