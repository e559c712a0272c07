// What GPUs of a compute capability are limited to.
#pragma once

#include <cstddef>

namespace cuda_on_host {

/// What every kernel has; a static limit of CUDA.
constexpr std::size_t kSharedOfEveryBlock = std::size_t{48} << 10U;

struct Architecture {
  int capability = 0;                        ///< the first of its kind: 86 is 8.6
  std::size_t shared_of_block = 0;           ///< the most, which a kernel has to ask for
  std::size_t shared_of_multiprocessor = 0;  ///< of all its blocks
  int threads_of_multiprocessor = 0;
  int blocks_of_multiprocessor = 0;
};

/// CUDA keeps as much of each block for itself, from 8.0 on.
constexpr std::size_t kSharedOfSystem = std::size_t{1} << 10U;

/// Of the newest that is known and not newer than this.
const Architecture& architecture_of(int major, int minor);

/// That of the double's GPUs. The caller does not hold the double's lock.
const Architecture& architecture_here();

}  // namespace cuda_on_host
