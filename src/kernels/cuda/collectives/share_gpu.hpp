// Several NCCL ranks on one GPU, for tests on small machines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/device/backend.hpp"

namespace dstune::cuda {

/// Variables of the environment under which NCCL takes ranks on one GPU for ranks of different
/// hosts, which talk through sockets: otherwise it refuses them as duplicates. Slow, and correct.
/// @param host  of this process
std::vector<std::pair<std::string, std::string>> shared_gpu_environment(const std::string& host,
                                                                        const Placement& placement);

/// Sets them for this process where it shares its GPU, over what the user set. Before the first
/// call of NCCL, which reads some of them once.
void prepare_shared_gpu(const Placement& placement);

}  // namespace dstune::cuda
