// What collectives compute.
#pragma once

#include <vector>

#include "tests/support/cuda_on_host/nccl/clique.hpp"

namespace cuda_on_host {

/// The ranks' results, from the calls in the order of ranks. Each addition is rounded to the type.
void compute(const std::vector<CollectiveCall>& calls);

}  // namespace cuda_on_host
