// The suite of Collectives over GPUs, and what is NCCL's own.
#include "kernels/cuda/collectives/nccl_collectives.hpp"

#include <gtest/gtest.h>

#include "tests/core/device/collectives/collectives_suite.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::testing {

CollectivesCase collectives_case() {
  constexpr std::int64_t kLarge = 5003;  // one call of NCCL, as any other
  const auto run = [](int size, const CollectivesCase::Body& body) {
    cuda_on_host::set_up({.devices = cuda::kMostRanks, .bytes = cuda::kGpuMemory});
    test::run_on_ranks(size, [&](int rank, test::ThreadTeam& team) {
      test::ThreadGroup group(team, rank);
      cuda::RankGpu own(rank);
      cuda::CommunicatorCache cache({}, cuda::NcclLog());
      const auto collectives = cache.collectives(group, own.device);
      body(own.device, *collectives);
      own.device.synchronize();
      group.vote(true);  // who left early would end what others are still receiving
    });
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "something is left";
  };
  const auto upload = [](const void* host, void* device, std::size_t size) {
    EXPECT_EQ(cudaMemcpy(device, host, size, cudaMemcpyHostToDevice), cudaSuccess);
  };
  const auto download = [](const void* device, void* host, std::size_t size) {
    EXPECT_EQ(cudaMemcpy(host, device, size, cudaMemcpyDeviceToHost), cudaSuccess);
  };
  return {run, upload, download, kLarge};
}

}  // namespace dstune::testing
