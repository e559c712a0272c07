// What the backend keeps from experiment to experiment, on CUDA on the host.
#include "kernels/cuda/cuda_backend.hpp"

#include <gtest/gtest.h>

#include "core/device/group.hpp"
#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/device/piece_size.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::cuda::cuda_backend_test {
namespace {

constexpr Bytes kMemory = Bytes{4} << 30U;
constexpr Bytes kLimit = Bytes{8} << 20U;

/// Free beside the largest piece of an experiment of one rank.
Bytes left_beside_buffers(bool has_peers) {
  cuda_on_host::set_up({.bytes = kMemory});
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);
  CudaBackend backend(0, has_peers);
  Device& device = backend.device({.memory_limit = kMemory});
  const auto collectives = backend.collectives(group, {});
  const Buffer buffer(device, MemoryCategory::parameters, 1);
  return device_space().free;
}

TEST(CudaBackend, LeavesNcclItsReserveIfThereAreOtherWorkers) {
  EXPECT_EQ(left_beside_buffers(true), kLoadedLater + CommunicatorLimits{}.reserve);
  EXPECT_EQ(left_beside_buffers(false), kLoadedLater);
}

class CudaBackendTest : public testing::Test {
 protected:
  CudaBackendTest() { cuda_on_host::set_up({}); }
  ~CudaBackendTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }
};

TEST_F(CudaBackendTest, AnswersTheDispatcherWhileAnEarlierExperimentStillRuns) {
  CudaBackend backend(0);
  Device& device = backend.device({.memory_limit = kLimit});
  cuda_on_host::hang_at("cudaMemsetAsync", 1);
  const Buffer buffer = make_buffer(device, MemoryCategory::temporaries, 1, DType::fp32);
  device.run(FillZero{buffer.tensor(DType::fp32)});
  int calls = 0;
  const auto give_up = [&calls] {
    if (++calls == 3) throw ExperimentAborted("by rank 0");
  };

  EXPECT_THROW(backend.device({.memory_limit = kLimit, .meanwhile = give_up}), ExperimentAborted);

  EXPECT_EQ(calls, 3);
  cuda_on_host::release_hangs();
}

}  // namespace
}  // namespace dstune::cuda::cuda_backend_test
