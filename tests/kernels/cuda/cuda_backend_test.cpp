// What the backend keeps from experiment to experiment, on CUDA on the host.
#include "kernels/cuda/cuda_backend.hpp"

#include <gtest/gtest.h>

#include "kernels/cuda/device/piece_size.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::cuda {
namespace {

constexpr Bytes kMemory = Bytes{4} << 30U;

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

}  // namespace
}  // namespace dstune::cuda
