// Which GPU a worker takes, and whether it has others to talk to.
#pragma once

#include "core/device/backend.hpp"

namespace dstune::cuda {

/// The worker's one of `seen` GPUs, at least one: bindings that leave the worker one GPU are
/// followed, else it takes that of its rank among the workers of its host. With more workers than
/// GPUs some take the same.
/// @param local_rank  Placement::local_rank
constexpr int own_gpu(int local_rank, int seen) { return local_rank < 0 ? 0 : local_rank % seen; }

/// Whether other workers take part in the run.
inline bool has_peers(const Placement& placement) {
  return !placement.is_one_host || placement.local_size > 1;
}

}  // namespace dstune::cuda
