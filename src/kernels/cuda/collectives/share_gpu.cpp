#include "kernels/cuda/collectives/share_gpu.hpp"

#include <cstdlib>

#include "core/base/host/this_host.hpp"
#include "core/base/text.hpp"

namespace dstune::cuda {

std::vector<std::pair<std::string, std::string>> shared_gpu_environment(
    const std::string& host, const Placement& placement) {
  std::vector<std::pair<std::string, std::string>> variables = {
      // NCCL refuses two ranks with equal host and bus id. This is its name of the host.
      {"NCCL_HOSTID", concat(host, "-", placement.rank)},
      {"NCCL_NET", "Socket"},
      {"NCCL_P2P_DISABLE", "1"},
      {"NCCL_SHM_DISABLE", "1"},
      {"NCCL_IB_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"},  // looks at what seem to be several hosts
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_RAS_ENABLE", "0"},
      {"NCCL_PROTO", "Simple"},
      {"NCCL_ALGO", "Ring"},
      {"NCCL_MAX_NCHANNELS", "2"},  // kernels of all ranks must find room on the GPU together
      {"NCCL_MULTI_RANK_GPU_ENABLE", "1"},  // the official switch, from 2.30.3 on
  };
  if (placement.is_one_host) variables.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  return variables;
}

void prepare_shared_gpu(const Placement& placement) {
  if (!placement.shares_gpu) return;
  for (const auto& [name, value] : shared_gpu_environment(host_name(), placement)) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

}  // namespace dstune::cuda
