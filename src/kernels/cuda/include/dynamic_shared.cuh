// Shared memory of a size that the launch says.
#pragma once

/// Declares `name`, a pointer to it, aligned to 128 bytes, within a kernel.
#define DSTUNE_DYNAMIC_SHARED(Type, name)                           \
  extern __shared__ __align__(128) unsigned char dstune_dynamic_[]; \
  Type* const name = reinterpret_cast<Type*>(dstune_dynamic_)
