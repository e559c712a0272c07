// Room for communicators, and for their calls, on CUDA on the host.
#include "kernels/cuda/collectives/communicator_maker.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::cuda::communicator_maker_test {
namespace {

constexpr Bytes kCommunicator = Bytes{600} << 20U;  // a GPU has no room for it beside a piece

class CommunicatorMakerTest : public OnHostTest {};

TEST_F(CommunicatorMakerTest, ThePieceOfTheExperimentBeforeMakesRoom) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kCommunicator});

  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    test::ThreadGroup group(team, rank);
    RankGpu own(rank);
    CommunicatorCache cache({}, NcclLog());
    own.gpu.free(own.gpu.allocate(1, Stream::compute, kGpuMemory));

    EXPECT_NO_THROW(cache.collectives(group, own.device));

    EXPECT_EQ(cache.bytes(), kCommunicator);
    EXPECT_EQ(cache.bytes_to_come(), CommunicatorLimits{}.reserve - kCommunicator);
    group.vote(true);
  });
}

TEST_F(CommunicatorMakerTest, APieceThatIsInUseStays) {
  test::run_on_ranks(2, [](int rank, test::ThreadTeam& team) {
    test::ThreadGroup group(team, rank);
    RankGpu own(rank);
    CommunicatorCache cache({}, NcclLog());
    const Buffer buffer = make_buffer(own.device, MemoryCategory::temporaries, 1, DType::fp32);
    const Bytes in_use = own.gpu.in_use();

    EXPECT_NO_THROW(cache.collectives(group, own.device));

    EXPECT_EQ(own.gpu.in_use(), in_use);
    group.vote(true);
  });
}

// CUDA would stop the host in a call, where it answers nobody.
TEST_F(CommunicatorMakerTest, CallsAheadOfTheDeviceAreBounded) {
  std::atomic<bool> is_open = false;
  const auto wait = [](void* open) {
    const auto& own = *static_cast<std::atomic<bool>*>(open);
    while (!own && cuda_on_host::full_queues() == 0) std::this_thread::yield();
  };
  test::ThreadTeam team(1);
  test::ThreadGroup group(team, 0);
  RankGpu own(0);
  CommunicatorCache cache({}, NcclLog());
  const auto collectives = cache.collectives(group, own.device);
  const Buffer buffer = make_buffer(own.device, MemoryCategory::temporaries, 2, DType::fp32);
  const Tensor both = buffer.tensor(DType::fp32);
  cudaLaunchHostFunc(own.gpu.stream(Stream::communication), wait, &is_open);
  own.device.on_tick([&] { is_open = true; });

  for (int i = 0; i < 500; ++i) {
    collectives->all_gather(both.slice(0, 1), both.slice(1, 1), Purpose::other);
  }

  own.device.synchronize();
  EXPECT_EQ(cuda_on_host::full_queues(), 0U);
}

}  // namespace
}  // namespace dstune::cuda::communicator_maker_test
