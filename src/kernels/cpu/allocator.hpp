// Host memory as PyTorch's CPU allocator has it, which gives large blocks back to the system.
#pragma once

#include "core/base/units.hpp"

namespace dstune::cpu {

/// From here on every block is new from the system, where its pages cost what zeroing them takes,
/// and goes back to it: malloc's largest threshold, to which the real one rises by itself. What is
/// smaller the C library keeps and gives out again.
constexpr Bytes kFromSystem = Bytes{32} << 20U;

/// Aligned to 64 bytes and not touched: a large block costs memory only where it is written.
/// nullptr if the system has no such memory.
void* allocate(Bytes size);

/// @param size  as given to allocate()
void deallocate(void* data, Bytes size) noexcept;

/// Gives the system what the C library keeps.
void trim_heap() noexcept;

}  // namespace dstune::cpu
