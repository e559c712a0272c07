// Communicators between threads, on CUDA on the host: kept, made anew, checked, ended.
#include "kernels/cuda/collectives/communicator_cache.hpp"

#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "core/device/faults.hpp"
#include "core/device/memory_budget.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::cuda {
namespace {

using cuda_on_host::calls;
using cuda_on_host::live;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Bytes kCommunicator = Bytes{600} << 20U;  // a GPU has no room for two

/// A group of threads under other names, each on a host of its own.
class Renamed final : public Group {
 public:
  Renamed(test::ThreadTeam& team, int rank, std::vector<int> members)
      : group_(team, rank), members_(std::move(members)) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::vector<int> members() const override { return members_; }
  void broadcast(std::span<std::byte> data, int root) override { group_.broadcast(data, root); }
  bool vote(bool ok) override { return group_.vote(ok); }
  std::vector<std::string> gather(const std::string& text) override {
    return group_.gather(text + std::to_string(group_.rank()));
  }
  void poll() override { group_.poll(); }

 private:
  test::ThreadGroup group_;
  std::vector<int> members_;
};

/// What one rank of a test has.
struct Rank {
  Rank(int number, test::ThreadTeam& ranks, const CommunicatorLimits& limits)
      : team(ranks), group(ranks, number), own(number), cache(limits, NcclLog()) {
    own.device.on_tick([this] { group.poll(); });
  }

  /// An all-reduce of ones over `collectives`.
  double sum(Collectives& collectives) {
    const Buffer one = make_buffer(own.device, MemoryCategory::temporaries, 1, DType::fp32);
    const Tensor tensor = one.tensor(DType::fp32);
    own.device.write(std::vector<float>{1}, tensor);
    own.device.host_wait(collectives.all_reduce(tensor, ReduceOp::sum, Purpose::other));
    float result = 0;
    own.device.read(tensor, {&result, 1});
    return result;
  }
  /// That of one experiment of `members`.
  double experiment(Group& members) { return sum(*cache.collectives(members, own.device)); }
  double experiment() { return experiment(group); }
  /// Nobody goes on before all are here.
  void meet() { group.vote(true); }

  test::ThreadTeam& team;
  test::ThreadGroup group;
  RankGpu own;
  CommunicatorCache cache;
};

template <class Body>
bool throws(Body body) {
  try {
    body();
  } catch (const std::domain_error&) {
    return true;
  }
  return false;
}

class CommunicatorCacheTest : public OnHostTest {
 protected:
  static void on_ranks(int size, const std::function<void(Rank& rank)>& body,
                       const CommunicatorLimits& limits = {}) {
    test::run_on_ranks(size, [&](int number, test::ThreadTeam& team) {
      Rank rank(number, team, limits);
      body(rank);
    });
  }
};

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

TEST_F(CommunicatorCacheTest, WrongSumsOfANewCommunicatorNameTheRanks) {
  cuda_on_host::corrupt_at("ncclAllReduce", 1, 1);

  try {
    on_ranks(2, [](Rank& rank) { rank.experiment(); });
    FAIL() << "the sums were wrong";
  } catch (const WrongSumsError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ncclAllReduce gave"));
    EXPECT_THAT(error.what(), HasSubstr("rank 1, of the communicator of ranks 0, 1"));
  }
}

TEST_F(CommunicatorCacheTest, WrongSumsOfAPartAreSeenToo) {
  EXPECT_THROW(on_ranks(4,
                        [](Rank& rank) {
                          const auto whole = rank.cache.collectives(rank.group, rank.own.device);
                          rank.meet();
                          if (rank.group.rank() == 3) {
                            cuda_on_host::corrupt_at("ncclReduceScatter", 1, 3);
                          }
                          const int own = rank.group.rank();
                          const auto part = whole->sub_group({own % 2, own % 2 + 2});
                          rank.sum(*part);
                        }),
               WrongSumsError);
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

TEST_F(CommunicatorCacheTest, AWarningOfAnEarlierErrorIsNoReasonOfALater) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kGpuMemory});

  on_ranks(2, [](Rank& rank) {
    EXPECT_THROW(rank.experiment(), OutOfMemoryError);
    rank.meet();
    cuda_on_host::inject({.function = "ncclCommInitRankConfig",
                          .call = 1,
                          .error = ncclUnhandledCudaError,
                          .device = rank.group.rank()});
    try {
      rank.experiment();
      ADD_FAILURE() << "NCCL failed";
    } catch (const NcclError& error) {
      EXPECT_THAT(error.what(), Not(HasSubstr("out of memory")));
    }
    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, AWarningOfAnotherCommunicatorIsNoReasonOfALaterError) {
  constexpr Bytes kOneAndSpace = Bytes{480} << 20U;
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = kGpuMemory, .communicator_bytes = kOneAndSpace});

  on_ranks(2, [](Rank& rank) {
    const int own = rank.group.rank();
    Renamed others(rank.team, own, {7, 8});
    rank.experiment();
    EXPECT_THROW(rank.experiment(others), OutOfMemoryError);
    rank.experiment();
    rank.meet();
    const auto fail = [&] {
      const auto collectives = rank.cache.collectives(rank.group, rank.own.device);
      cuda_on_host::inject(
          {.function = "ncclAllReduce", .call = 1, .error = ncclUnhandledCudaError, .device = own});
      rank.sum(*collectives);
    };

    EXPECT_THROW(fail(), NcclError);

    rank.meet();
  });
}

TEST_F(CommunicatorCacheTest, TheSameWarningAgainIsOutOfMemoryWhereLittleIsFree) {
  cuda_on_host::set_up(
      {.devices = kMostRanks, .bytes = Bytes{300} << 20U, .communicator_bytes = kGpuMemory});

  on_ranks(2, [](Rank& rank) {
    for (int experiment = 0; experiment < 2; ++experiment) {
      EXPECT_THROW(rank.experiment(), OutOfMemoryError);
      rank.meet();
    }
  });
}

/// Makes a communicator of two ranks where NCCL says that it uses `network`, and looks at it.
class NetworkTest : public CommunicatorCacheTest {
 protected:
  enum class Hosts { one, several };

  /// What rank 0 logs while `experiments` communicators are made.
  std::string log_of(Hosts hosts, const std::string& network, int experiments = 1) {
    ::testing::internal::CaptureStderr();
    on_ranks(2, [&](Rank& rank) {
      const int own = rank.group.rank();
      const std::string path = folder_ / std::to_string(own);
      std::ofstream(path) << "host:1:1 [0] NCCL INFO Using network " << network << "\n";
      CommunicatorCache cache({}, NcclLog(path));
      for (int first = 0; first < experiments; ++first) {
        Renamed apart(rank.team, own, {2 * first + 1, 2 * first + 2});
        Group& group = hosts == Hosts::one ? static_cast<Group&>(rank.group) : apart;
        const auto collectives = cache.collectives(group, rank.own.device);
        if (own != 0) continue;
        EXPECT_EQ(collectives->network(), hosts == Hosts::one ? "" : network);
        EXPECT_EQ(collectives->sub_group({0})->network(), collectives->network());
      }
      rank.meet();
    });
    return ::testing::internal::GetCapturedStderr();
  }

  testing_support::TemporaryDirectory folder_;
};

TEST_F(NetworkTest, IsSaidBetweenHosts) {
  const std::string log = log_of(Hosts::several, "IB");

  EXPECT_THAT(log, HasSubstr("communicator of 2 ranks"));
  EXPECT_THAT(log, HasSubstr("network: IB"));
  EXPECT_THAT(log, Not(HasSubstr("warning")));
}

TEST_F(NetworkTest, OfOneHostIsNobodysBusiness) {
  const std::string log = log_of(Hosts::one, "Socket");

  EXPECT_THAT(log, HasSubstr("communicator of 2 ranks"));
  EXPECT_THAT(log, Not(HasSubstr("network")));
  EXPECT_THAT(log, Not(HasSubstr("warning")));
}

TEST_F(NetworkTest, OfSocketsBetweenHostsIsAWarningOnce) {
  const std::string log = log_of(Hosts::several, "Socket", 2);

  const std::string warning = "warning: NCCL sends between 2 hosts over sockets";
  EXPECT_THAT(log, HasSubstr(warning));
  EXPECT_EQ(log.find(warning), log.rfind(warning));
  EXPECT_THAT(log, HasSubstr("libnccl-net.so"));
}

}  // namespace
}  // namespace dstune::cuda
