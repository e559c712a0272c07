// Which thread of which block runs, on the host.
#pragma once
#pragma GCC system_header

#include "../vector_types.h"

// constinit spares every access the check whether the variable is initialised.
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
inline constexpr int warpSize = 32;
