// Communicators: non-blocking creation, splits, faults, aborts, and that nothing is left of them.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/nccl/test_ranks.hpp"

namespace communicator_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::run_ranks;
using cuda_on_host::settle;
using cuda_on_host::TestRank;

ncclConfig_t non_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

ncclResult_t sum(const DeviceArray<float>& data, TestRank& rank, ncclComm_t comm) {
  return ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, comm, rank.stream);
}

/// The sum of ones over `comm`.
float members(TestRank& rank, ncclComm_t comm) {
  const DeviceArray<float> one(std::vector<float>{1.0F});
  if (sum(one, rank, comm) == ncclInProgress) settle(comm);
  cuda_on_host::check(cudaStreamSynchronize(rank.stream));
  return one.values()[0];
}

TEST(Communicator, is_in_progress_until_all_ranks_have_come_and_launches_when_polled) {
  static ncclUniqueId id;
  ncclGetUniqueId(&id);
  run_ranks(
      3,
      [](TestRank& rank) {
        ncclConfig_t config = non_blocking();
        EXPECT_EQ(ncclCommInitRankConfig(&rank.comm, 3, id, rank.rank, &config), ncclInProgress);
        EXPECT_EQ(settle(rank.comm), ncclSuccess);
        int size = 0;
        int number = 0;
        ncclCommCount(rank.comm, &size);
        ncclCommUserRank(rank.comm, &number);
        EXPECT_EQ(size, 3);
        EXPECT_EQ(number, rank.rank);
        EXPECT_EQ(members(rank, rank.comm), 3.0F);
        EXPECT_EQ(ncclCommFinalize(rank.comm), ncclInProgress);
        EXPECT_EQ(settle(rank.comm), ncclSuccess);
      },
      false);
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

TEST(Communicator, alone_is_not_ready) {
  cuda_on_host::set_up({});
  const cuda_on_host::TestStream stream;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = non_blocking();
  ncclComm_t comm = nullptr;
  ncclCommInitRankConfig(&comm, 2, id, 0, &config);
  const DeviceArray<float> data(1);

  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(comm, &state);

  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, comm, stream.get()),
            ncclInvalidArgument);
  ncclCommAbort(comm);
  EXPECT_EQ(cuda_on_host::live().communicators, 0);
}

TEST(Communicator, splits_by_color_and_orders_by_key) {
  run_ranks(4, [](TestRank& rank) {
    ncclComm_t child = nullptr;
    const int color = rank.rank == 0 ? NCCL_SPLIT_NOCOLOR : 1;
    ASSERT_EQ(ncclCommSplit(rank.comm, color, -rank.rank, &child, nullptr), ncclSuccess);
    if (rank.rank == 0) {
      EXPECT_EQ(child, nullptr);
      return;
    }
    int number = -1;
    ncclCommUserRank(child, &number);
    EXPECT_EQ(number, 3 - rank.rank);
    EXPECT_EQ(members(rank, child), 3.0F);
    ncclCommDestroy(child);
  });
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

TEST(Communicator, takes_memory_of_its_device_but_not_where_a_split_shares) {
  cuda_on_host::set_up({.bytes = 1000, .communicator_bytes = 100});
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclComm_t comm = nullptr;
  ncclCommInitRank(&comm, 1, id, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.splitShare = 1;
  ncclComm_t child = nullptr;
  ncclCommSplit(comm, 0, 0, &child, &config);
  std::size_t free = 0;
  std::size_t total = 0;

  cudaMemGetInfo(&free, &total);

  EXPECT_EQ(free, 900U);
  ncclCommDestroy(child);
  ncclCommDestroy(comm);
  cudaMemGetInfo(&free, &total);
  EXPECT_EQ(free, 1000U);
}

TEST(Communicator, takes_more_memory_at_its_first_collective_of_each_kind) {
  cuda_on_host::set_up({.bytes = 1000, .communicator_bytes = 100, .first_use_bytes = 300});
  const cuda_on_host::TestStream stream;
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclComm_t comm = nullptr;
  ncclCommInitRank(&comm, 1, id, 0);
  const DeviceArray<float> data(1);
  const auto free_bytes = [] {
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    return free + sizeof(float);
  };
  const auto all_reduce = [&] {
    return ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, comm, stream.get());
  };
  const auto broadcast = [&] {
    return ncclBroadcast(data.data(), data.data(), 1, ncclFloat, 0, comm, stream.get());
  };
  const auto all_gather = [&] {
    return ncclAllGather(data.data(), data.data(), 1, ncclFloat, comm, stream.get());
  };

  EXPECT_EQ(free_bytes(), 900U);
  EXPECT_EQ(all_reduce(), ncclSuccess);
  EXPECT_EQ(free_bytes(), 600U);
  EXPECT_EQ(all_reduce(), ncclSuccess);
  EXPECT_EQ(free_bytes(), 600U);
  EXPECT_EQ(broadcast(), ncclSuccess);
  EXPECT_EQ(free_bytes(), 300U);
  EXPECT_EQ(all_gather(), ncclUnhandledCudaError) << "4 bytes are data's";
  EXPECT_STREQ(ncclGetLastError(nullptr), "Cuda failure 'out of memory'");

  ncclCommDestroy(comm);
  EXPECT_EQ(free_bytes(), 1000U);
}

/// Both ranks' states of a communicator of two, made by one thread.
std::pair<ncclResult_t, ncclResult_t> states_of_two(const std::function<void(int)>& prepare) {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = non_blocking();
  ncclComm_t comms[2] = {};
  for (const int rank : {0, 1}) {
    prepare(rank);
    EXPECT_EQ(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config), ncclInProgress);
  }
  const std::pair states(settle(comms[0]), settle(comms[1]));
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
  return states;
}

TEST(Communicator, refuses_two_ranks_on_one_gpu_unless_they_seem_to_be_on_two_hosts) {
  cuda_on_host::set_up({.devices = 2});
  const std::pair refused(ncclInvalidUsage, ncclInvalidUsage);
  const std::pair taken(ncclSuccess, ncclSuccess);

  EXPECT_EQ(states_of_two([](int) {}), refused);
  EXPECT_STREQ(ncclGetLastError(nullptr), "Duplicate GPU detected");
  EXPECT_EQ(states_of_two([](int rank) { cudaSetDevice(rank); }), taken);
  cudaSetDevice(0);
  EXPECT_EQ(
      states_of_two([](int rank) { ::setenv("NCCL_HOSTID", std::to_string(rank).c_str(), 1); }),
      taken);
  ::unsetenv("NCCL_HOSTID");
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

TEST(Communicator, of_which_two_ranks_share_a_gpu_is_never_ready_for_the_third) {
  cuda_on_host::set_up({.devices = 2});
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = non_blocking();
  ncclComm_t comms[3] = {};
  for (const int rank : {0, 1, 2}) {
    cudaSetDevice(rank / 2);
    ncclCommInitRankConfig(&comms[rank], 3, id, rank, &config);
  }
  ncclResult_t third = ncclSuccess;

  ncclCommGetAsyncError(comms[2], &third);

  EXPECT_EQ(settle(comms[0]), ncclInvalidUsage);
  EXPECT_EQ(settle(comms[1]), ncclInvalidUsage);
  EXPECT_EQ(third, ncclInProgress);
  for (ncclComm_t comm : comms) ncclCommAbort(comm);
}

TEST(Communicator, aborts_release_each_ranks_own_stream_when_one_never_comes) {
  std::atomic<int> aborted = 0;
  run_ranks(3, [&](TestRank& rank) {
    const DeviceArray<float> data(1);
    if (rank.rank != 2) {
      sum(data, rank, rank.comm);
      EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    }
    if (rank.rank == 1) {  // its peer still waits after this rank has gone on
      while (aborted == 0) std::this_thread::yield();
      EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    }
    ncclCommAbort(std::exchange(rank.comm, nullptr));
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    ++aborted;
  });
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
}

TEST(Communicator, a_hanging_call_ends_with_the_abort) {
  run_ranks(2, [](TestRank& rank) {
    const DeviceArray<float> data(1);
    if (rank.rank == 0) cuda_on_host::hang_at("ncclAllReduce", 1, 0);
    sum(data, rank, rank.comm);
    EXPECT_EQ(cudaStreamQuery(rank.stream),
              cudaErrorNotReady);  // both: the other waits for this one
    ncclCommAbort(std::exchange(rank.comm, nullptr));
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
  });
}

TEST(Communicator, tells_of_an_error_that_came_later) {
  run_ranks(2, [](TestRank& rank) {
    const DeviceArray<float> data(1);
    if (rank.rank == 0) cuda_on_host::fail_later_at("ncclAllReduce", 1, ncclRemoteError, 0);
    EXPECT_EQ(sum(data, rank, rank.comm), ncclSuccess);
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(rank.comm, &state);
    EXPECT_EQ(state, rank.rank == 0 ? ncclRemoteError : ncclSuccess);
    ncclCommAbort(std::exchange(rank.comm, nullptr));
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
  });
}

TEST(Communicator, the_kth_call_fails_and_a_group_with_it_does_nothing) {
  run_ranks(1, [](TestRank& rank) {
    const DeviceArray<float> data(std::vector<float>{1.0F});
    cuda_on_host::inject({.function = "ncclAllReduce", .call = 2, .error = ncclSystemError});
    EXPECT_EQ(sum(data, rank, rank.comm), ncclSuccess);
    ncclGroupStart();
    EXPECT_EQ(sum(data, rank, rank.comm), ncclSystemError);
    EXPECT_EQ(ncclGroupEnd(), ncclSystemError);
    EXPECT_EQ(sum(data, rank, rank.comm), ncclSuccess);
    EXPECT_EQ(cuda_on_host::calls("ncclAllReduce", 0), 3U);
  });
}

TEST(Communicator, gives_a_wrong_sum_where_it_is_told_to) {
  run_ranks(2, [](TestRank& rank) {
    if (rank.rank == 1) cuda_on_host::corrupt_at("ncclAllReduce", 2, 1);
    EXPECT_EQ(members(rank, rank.comm), 2.0F);
    EXPECT_EQ(members(rank, rank.comm), rank.rank == 1 ? 3.0F : 2.0F);
    EXPECT_EQ(members(rank, rank.comm), 2.0F);
  });
}

}  // namespace
}  // namespace communicator_test
