// Dynamic shared memory on the host: `extern __shared__` has no meaning here.
#pragma once
#pragma GCC system_header

#include "cuda_runtime.h"

namespace cuda_on_host {

/// The dynamic shared memory of the block that runs on this thread, aligned to 128 bytes.
void* dynamic_shared();

}  // namespace cuda_on_host

inline void* cuda_on_host_dynamic_shared() { return cuda_on_host::dynamic_shared(); }

/// Declares `name` as a pointer to the block's dynamic shared memory.
#define DSTUNE_DYNAMIC_SHARED(type, name) \
  type* name = static_cast<type*>(cuda_on_host_dynamic_shared())
