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

TEST_F(CudaBackendTest, AnExperimentBeginsWithoutTheSegmentsOfTheOneBefore) {
  CudaBackend backend(0);
  Device& device = backend.device({.memory_limit = kLimit});
  device.memory().count_as(AllocatorModel::caching);
  make_buffer(device, MemoryCategory::temporaries, 1, DType::fp32).reset();
  EXPECT_EQ(cuda_on_host::live().pages, 1);

  backend.device({.memory_limit = kLimit});

  EXPECT_EQ(cuda_on_host::live().pages, 0);
}

TEST_F(CudaBackendTest, SegmentsOfTheExperimentBeforeMakeRoomForACommunicator) {
  constexpr Bytes kMiB = Bytes{1} << 20U;
  cuda_on_host::set_up({.devices = 2, .bytes = 1024 * kMiB, .communicator_bytes = 600 * kMiB});

  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    test::ThreadGroup group(team, rank);
    CudaBackend backend(rank);
    const DeviceShare share{.memory_limit = 320 * kMiB};
    Device& device = backend.device(share);
    device.memory().count_as(AllocatorModel::caching);
    Buffer(device, MemoryCategory::parameters, 320 * kMiB).reset();
    EXPECT_LT(device_space().free, 600 * kMiB);
    backend.device(share);

    EXPECT_NO_THROW(backend.collectives(group, {}));

    group.vote(true);
  });
}

// CUDA would wait for the collective before it takes its memory away.
TEST_F(CudaBackendTest, ACollectiveThatHangsEndsBeforeItsMemoryGoes) {
  cuda_on_host::set_up({.devices = 2});

  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    test::ThreadGroup group(team, rank);
    CudaBackend backend(rank);
    Device& device = backend.device({.memory_limit = kLimit});
    device.memory().count_as(AllocatorModel::caching);
    const auto collectives = backend.collectives(group, {});
    const Buffer buffer = make_buffer(device, MemoryCategory::temporaries, 1, DType::fp32);
    if (rank == 0) cuda_on_host::hang_at("ncclAllReduce", 1, 0);
    group.vote(true);

    collectives->all_reduce(buffer.tensor(DType::fp32), ReduceOp::sum, Purpose::other);
  });

  EXPECT_EQ(cuda_on_host::live().communicators, 0);
}

}  // namespace
}  // namespace dstune::cuda::cuda_backend_test
