// What is told of communicators: wrong sums, the reason of an error, and the network.
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include "core/device/faults.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "kernels/cuda/collectives/nccl_check.hpp"
#include "tests/kernels/cuda/collectives/cache_rank.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::cuda::communicator_reports_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
}  // namespace dstune::cuda::communicator_reports_test
