// The CUDA driver's functions for which the run time has none, opened at their first use:
// driver().MemCreate(...) is cuMemCreate(...).
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/libraries/library.hpp"

/// The functions that are used, without their "cu". A name that cuda.h turns into one with a
/// version has to be given with it.
#define DSTUNE_DRIVER_FUNCTIONS(ENTRY) \
  ENTRY(DeviceGet)                     \
  ENTRY(DeviceGetAttribute)            \
  ENTRY(DeviceGetUuid_v2)              \
  ENTRY(MemGetAllocationGranularity)   \
  ENTRY(MemAddressReserve)             \
  ENTRY(MemAddressFree)                \
  ENTRY(MemCreate)                     \
  ENTRY(MemRelease)                    \
  ENTRY(MemMap)                        \
  ENTRY(MemUnmap)                      \
  ENTRY(MemSetAccess)

namespace dstune::cuda {

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member cannot have them
#define DSTUNE_DRIVER_MEMBER(function) decltype(&::cu##function) function = nullptr;
  DSTUNE_DRIVER_FUNCTIONS(DSTUNE_DRIVER_MEMBER)
#undef DSTUNE_DRIVER_MEMBER
};

/// Any thread may call it. @throws Error  driver_library().problem
const Driver& driver();

const Library& driver_library();

/// The driver's errors have the numbers of the run time's (driver_types.h, since CUDA 10.1), so
/// that check() tells them.
constexpr cudaError_t as_runtime_error(CUresult result) { return static_cast<cudaError_t>(result); }

}  // namespace dstune::cuda
