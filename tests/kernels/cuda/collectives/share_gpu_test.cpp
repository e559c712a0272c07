#include "kernels/cuda/collectives/share_gpu.hpp"

#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "core/base/host/this_host.hpp"

namespace dstune::cuda::share_gpu_test {
namespace {

std::map<std::string, std::string> environment(const Placement& placement) {
  const auto variables = shared_gpu_environment("node1", placement);
  return {variables.begin(), variables.end()};
}

TEST(SharedGpuEnvironment, EveryRankIsAHostOfItsOwnToNccl) {
  EXPECT_EQ(environment({.rank = 3}).at("NCCL_HOSTID"), "node1-3");
  EXPECT_EQ(environment({.rank = 4}).at("NCCL_HOSTID"), "node1-4");
}

TEST(SharedGpuEnvironment, RanksTalkThroughSocketsAlone) {
  const auto variables = environment({});

  EXPECT_EQ(variables.at("NCCL_NET"), "Socket");
  for (const char* off : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"}) {
    EXPECT_EQ(variables.at(off), "1") << off;
  }
  for (const char* off : {"NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE", "NCCL_RAS_ENABLE"}) {
    EXPECT_EQ(variables.at(off), "0") << off;
  }
}

TEST(SharedGpuEnvironment, TheLoopbackServesOneHostOnly) {
  EXPECT_EQ(environment({.is_one_host = true}).at("NCCL_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(environment({.is_one_host = false}).count("NCCL_SOCKET_IFNAME"), 0U);
}

TEST(PrepareSharedGpu, LeavesTheEnvironmentAloneUnlessTheGpuIsShared) {
  ::setenv("NCCL_NET", "IB", 1);
  ::unsetenv("NCCL_HOSTID");

  prepare_shared_gpu({.rank = 2, .shares_gpu = false});

  EXPECT_STREQ(std::getenv("NCCL_NET"), "IB");
  EXPECT_EQ(std::getenv("NCCL_HOSTID"), nullptr);

  prepare_shared_gpu({.rank = 2, .shares_gpu = true});

  EXPECT_STREQ(std::getenv("NCCL_NET"), "Socket");
  EXPECT_EQ(std::getenv("NCCL_HOSTID"), host_name() + "-2");
}

}  // namespace
}  // namespace dstune::cuda::share_gpu_test
