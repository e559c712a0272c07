// Which GPU a worker takes.
#pragma once

namespace dstune::cuda {

/// Of `seen` GPUs, at least one: bindings that leave the worker one GPU are followed, else it takes
/// that of its rank among the workers of its host. With more workers than GPUs some take the same.
/// @param local_rank  Placement::local_rank
constexpr int own_gpu(int local_rank, int seen) { return local_rank < 0 ? 0 : local_rank % seen; }

}  // namespace dstune::cuda
