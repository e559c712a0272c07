// What NCCL wants to be alike on all ranks of a communicator.
#pragma once

#include <vector>

#include "core/device/backend.hpp"

namespace dstune::cuda {

/// NCCL's version, which must agree, and this process's variables that begin with NCCL_, by name;
/// not those that say what is logged, nor NCCL_HOSTID, which is a host's own.
std::vector<CommonSetting> nccl_settings();

}  // namespace dstune::cuda
