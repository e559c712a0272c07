// Communicators between threads, on CUDA on the host: kept, made anew, checked, ended.
#include "kernels/cuda/collectives/communicator_cache.hpp"

#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/device/faults.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "tests/kernels/cuda/collectives/cache_rank.hpp"

namespace dstune::cuda::communicator_cache_test {
namespace {

using cuda_on_host::calls;
using cuda_on_host::live;

template <class Body>
bool throws(Body body) {
  try {
    body();
  } catch (const std::domain_error&) {
    return true;
  }
  return false;
}

TEST_F(CommunicatorCacheTest, TheNextExperimentOfAGroupUsesItsCommunicator) {
  on_ranks(3, [](Rank& rank) {
    EXPECT_EQ(rank.experiment(), 3);
    EXPECT_EQ(rank.experiment(), 3);
    rank.meet();
  });

  EXPECT_EQ(calls("ncclCommInitRankConfig"), 3U);
}

// Else each process would get a context on GPU 0.
TEST_F(CommunicatorCacheTest, EndsACommunicatorOnTheGpuOfItsRank) {
  on_ranks(3, [](Rank& rank) {
    rank.experiment();
    rank.meet();
  });

  for (const int gpu : {0, 1, 2}) EXPECT_EQ(calls("ncclCommAbort", gpu), 1U) << gpu;
}

TEST_F(CommunicatorCacheTest, OneRankNeedsNoNccl) {
  on_ranks(1, [](Rank& rank) { EXPECT_EQ(rank.experiment(), 1); });

  EXPECT_EQ(calls("ncclCommInitRankConfig"), 0U);
}

TEST_F(CommunicatorCacheTest, AllMakeANewOneIfAMemberHasLostIts) {
  on_ranks(2, [](Rank& rank) {
    rank.experiment();
    rank.meet();
    CommunicatorCache empty({}, NcclLog());
    CommunicatorCache& cache = rank.group.rank() == 1 ? empty : rank.cache;

    EXPECT_EQ(rank.sum(*cache.collectives(rank.group, rank.own.device)), 2);
    rank.meet();
  });

  EXPECT_EQ(calls("ncclCommInitRankConfig"), 4U);
}

TEST_F(CommunicatorCacheTest, TheOldCommunicatorIsGoneBeforeItsGroupMakesANewOne) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kCommunicator});

  on_ranks(2, [](Rank& rank) {
    rank.experiment();
    rank.meet();
    const auto lose = [&rank] {
      const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
      if (rank.group.rank() == 1) throw std::domain_error("after the others' last call");
    };
    EXPECT_EQ(rank.group.rank() == 1, throws(lose));

    EXPECT_EQ(rank.experiment(), 2);
    EXPECT_EQ(rank.cache.bytes(), kCommunicator);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, KeepsNoMoreThanItsNumber) {
  on_ranks(2,
           [](Rank& rank) {
             Renamed others(rank.team, rank.group.rank(), {7, 8});
             EXPECT_EQ(rank.experiment(), 2);
             EXPECT_EQ(rank.experiment(others), 2);
             rank.meet();
             EXPECT_EQ(live().communicators, 2);
             rank.meet();
             EXPECT_EQ(rank.experiment(others), 2);
             EXPECT_EQ(rank.experiment(), 2);
             rank.meet();
           },
           {.most = 1});

  EXPECT_EQ(calls("ncclCommInitRankConfig"), 6U);
}

TEST_F(CommunicatorCacheTest, KeepsNoMoreMemoryThanItsReserve) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kCommunicator});

  on_ranks(2,
           [](Rank& rank) {
             Renamed others(rank.team, rank.group.rank(), {7, 8});
             rank.experiment();
             EXPECT_EQ(rank.cache.bytes(), kCommunicator);
             rank.experiment(others);
             EXPECT_EQ(rank.cache.bytes(), kCommunicator);
             rank.meet();
           },
           {.reserve = 2 * kCommunicator - 1});
}

// NCCL connects ranks for a kind of collective when it is first called: the known values that are
// exchanged when a communicator is made use every kind.
TEST_F(CommunicatorCacheTest, CountsWhatNcclTakesAtTheFirstUseOfEachKind) {
  constexpr Bytes kFirstUse = Bytes{1} << 20U;
  constexpr Bytes kKinds =
      6;  // all-reduce, reduce, reduce-scatter, all-gather, broadcast, messages
  cuda_on_host::set_up({.devices = kMostRanks,
                        .bytes = kGpuMemory,
                        .communicator_bytes = kCommunicator,
                        .first_use_bytes = kFirstUse});

  on_ranks(4, [](Rank& rank) {
    const int own = rank.group.rank();
    const Bytes before = device_space().free;
    {
      const auto whole = rank.cache.collectives(rank.group, rank.own.device);
      EXPECT_EQ(rank.sum(*whole), 4);
      EXPECT_EQ(rank.cache.bytes(), kCommunicator + kKinds * kFirstUse);
      EXPECT_EQ(rank.sum(*whole->sub_group({own % 2, own % 2 + 2})), 2);
    }

    EXPECT_EQ(rank.cache.bytes(), kCommunicator + 2 * kKinds * kFirstUse) << "the part's, too";
    rank.own.gpu.release_memory();
    EXPECT_EQ(rank.cache.bytes(), before - device_space().free);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, ADeviceThatIsFullAtTheFirstUseIsOutOfMemory) {
  cuda_on_host::set_up({.devices = kMostRanks, .bytes = kGpuMemory, .first_use_bytes = kGpuMemory});

  on_ranks(2, [](Rank& rank) {
    EXPECT_THROW(rank.cache.collectives(rank.group, rank.own.device), OutOfMemoryError);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, ADeviceThatIsFullIsOutOfMemory) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kGpuMemory});

  on_ranks(2, [](Rank& rank) {
    EXPECT_THROW(rank.cache.collectives(rank.group, rank.own.device), OutOfMemoryError);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, AnExceptionEndsTheCommunicatorAndTheNextExperimentMakesANewOne) {
  on_ranks(2, [](Rank& rank) {
    const auto fail = [&] {
      const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
      throw std::domain_error("the experiment fails");
    };

    EXPECT_THROW(fail(), std::domain_error);
    rank.meet();
    EXPECT_EQ(live().communicators, 0);
    rank.meet();
    EXPECT_EQ(rank.experiment(), 2);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, AnExceptionWithinCoalescedCallsLeavesNothingOpen) {
  on_ranks(2, [](Rank& rank) {
    const Buffer buffer = make_buffer(rank.own.device, MemoryCategory::temporaries, 2, DType::fp32);
    const Tensor all = buffer.tensor(DType::fp32);
    const auto fail = [&] {
      const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
      CoalescedCalls calls(*collectives);
      collectives->all_gather(all.slice(0, 1), all, Purpose::other);
      throw ExperimentAborted("by rank 0");
    };

    EXPECT_THROW(fail(), ExperimentAborted);
    rank.meet();
    EXPECT_EQ(rank.experiment(), 2);
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, PartsAreMadeAtTheirFirstCallAndKept) {
  on_ranks(4, [](Rank& rank) {
    const int own = rank.group.rank();
    const auto use_parts = [&] {
      const auto whole = rank.cache.collectives(rank.group, rank.own.device);
      const auto part = whole->sub_group({own % 2, own % 2 + 2});
      const auto alone = whole->sub_group({own});
      EXPECT_EQ(rank.sum(*alone), 1);
      EXPECT_EQ(rank.sum(*part), 2);
      EXPECT_EQ(rank.sum(*whole), 4);
    };

    use_parts();
    use_parts();
    rank.meet();
  });

  EXPECT_EQ(calls("ncclCommSplit"), 8U);
}

TEST_F(CommunicatorCacheTest, AnErrorThatComesWhileTheHostWaitsEndsTheWait) {
  const auto body = [](Rank& rank) {
    const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
    rank.meet();
    if (rank.group.rank() == 0) {
      cuda_on_host::fail_later_at("ncclAllReduce", 1, ncclRemoteError, 0);
    }
    rank.sum(*collectives);
  };

  EXPECT_THROW(on_ranks(2, body), NcclError);

  EXPECT_EQ(live().communicators, 0);
}

TEST_F(CommunicatorCacheTest, AnErrorThatComesAfterTheCallIsSeenByWhoWaitsForIt) {
  const auto body = [](Rank& rank) {
    const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
    rank.meet();
    if (rank.group.rank() == 1) rank.sum(*collectives);
    const Buffer buffer = make_buffer(rank.own.device, MemoryCategory::temporaries, 1, DType::fp32);
    const auto call = [&] {
      return collectives->all_reduce(buffer.tensor(DType::fp32), ReduceOp::sum, Purpose::other);
    };
    cuda_on_host::hang_at("ncclAllReduce", 1, 0);
    const Event end = call();
    bool fails = true;
    rank.own.device.on_tick([&] {
      if (!std::exchange(fails, false)) return;
      cuda_on_host::fail_later_at("ncclAllReduce", 1, ncclRemoteError, 0);
      EXPECT_THROW(call(), NcclError);
    });

    rank.own.device.host_wait(end);
  };

  EXPECT_THROW(on_ranks(2, body), NcclError);
}

TEST_F(CommunicatorCacheTest, WhoWaitsForALostPeerIsEndedByTheDispatcher) {
  const auto body = [](Rank& rank) {
    const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
    if (rank.group.rank() == 1) throw std::domain_error("rank 1 fails");
    EXPECT_THROW(rank.sum(*collectives), ExperimentAborted);
    throw ExperimentAborted("as rank 0 says");
  };

  EXPECT_THROW(on_ranks(2, body), std::domain_error);

  EXPECT_EQ(live().communicators, 0);
}

TEST_F(CommunicatorCacheTest, ACommunicatorThatAMemberNeverJoinsIsGivenUp) {
  const auto body = [](Rank& rank) {
    if (rank.group.rank() == 0) {
      EXPECT_THROW(rank.experiment(), NcclError);
    } else {
      ncclUniqueId id{};
      rank.group.vote(false);
      rank.group.broadcast(std::as_writable_bytes(std::span(id.internal)), 0);
    }
    rank.meet();
    EXPECT_EQ(live().communicators, 0);
  };

  on_ranks(2, body, {.making = 0.01});
}

TEST_F(CommunicatorCacheTest, AnEndThatDoesNotComeLosesTheDevice) {
  on_ranks(2,
           [](Rank& rank) {
             const auto fail = [&] {
               const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
               rank.meet();
               cuda_on_host::hang_at("ncclCommAbort", 1);
               throw std::domain_error("the experiment fails");
             };

             EXPECT_THROW(fail(), std::domain_error);

             EXPECT_THROW(rank.cache.check(), DeviceLostError);
             EXPECT_THROW(rank.experiment(), DeviceLostError);
             rank.meet();
             cuda_on_host::release_hangs();
             while (live().communicators > 0) std::this_thread::yield();
           },
           {.ending = 0.01});
}

}  // namespace
}  // namespace dstune::cuda::communicator_cache_test
