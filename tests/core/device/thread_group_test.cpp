// The in-process Group and Collectives of the tests (tests/support) keep their contracts.
#include "tests/support/thread_group.hpp"

#include <cstring>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/core/device/collectives/collectives_suite.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::test::thread_group_test {
namespace {

TEST(ThreadGroup, VoteIsTrueOnlyIfEverybodySaysYes) {
  run_on_ranks(3, [](int rank, ThreadTeam& team) {
    ThreadGroup group(team, rank);

    const bool all = group.vote(true);
    const bool not_all = group.vote(rank != 1);

    EXPECT_TRUE(all);
    EXPECT_FALSE(not_all);
  });
}

TEST(ThreadGroup, GathersTextsOnRankZeroAlone) {
  run_on_ranks(3, [](int rank, ThreadTeam& team) {
    ThreadGroup group(team, rank);

    const auto texts = group.gather("rank " + std::to_string(rank));

    using Texts = std::vector<std::string>;
    EXPECT_EQ(texts, rank == 0 ? (Texts{"rank 0", "rank 1", "rank 2"}) : Texts{});
  });
}

TEST(ThreadGroup, BroadcastsBytes) {
  run_on_ranks(3, [](int rank, ThreadTeam& team) {
    ThreadGroup group(team, rank);
    std::byte value{static_cast<unsigned char>(rank)};

    group.broadcast({&value, 1}, 2);

    EXPECT_EQ(value, std::byte{2});
  });
}

TEST(ThreadGroup, AnExceptionOfOneRankEndsTheWaitingOfTheOthers) {
  int aborted = 0;
  std::mutex mutex;
  const auto body = [&](int rank, ThreadTeam& team) {
    ThreadGroup group(team, rank);
    group.vote(true);
    if (rank == 1) throw std::domain_error("rank 1 fails");
    try {
      group.vote(true);
    } catch (const ExperimentAborted&) {
      const std::lock_guard lock(mutex);
      ++aborted;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(4, body), std::domain_error);

  EXPECT_EQ(aborted, 3);
}

TEST(ThreadCollectives, PartsOfTheGroupSumAmongThemselves) {
  run_on_ranks(4, [](int rank, ThreadTeam& team) {
    cpu::CpuDevice device(Bytes{1} << 20U);
    ThreadCollectives whole(device, team, rank);
    const auto neighbours =
        whole.sub_group(rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3});
    const auto others = whole.sub_group({rank % 2, rank % 2 + 2});

    const double near = all_reduce(device, *neighbours, rank, ReduceOp::sum);
    const double far = all_reduce(device, *others, rank, ReduceOp::sum);
    const double all = all_reduce(device, whole, rank, ReduceOp::sum);

    EXPECT_EQ(near, rank < 2 ? 1 : 5);
    EXPECT_EQ(far, rank % 2 == 0 ? 2 : 4);
    EXPECT_EQ(all, 6);
    EXPECT_EQ(neighbours->rank(), rank % 2);
    EXPECT_EQ(others->rank(), rank / 2);
  });
}

TEST(ThreadCollectives, APartOfTheGroupHasItsOwnLinesInTheLedger) {
  run_on_ranks(4, [](int rank, ThreadTeam& team) {
    cpu::CpuDevice device(Bytes{1} << 20U);
    ThreadCollectives whole(device, team, rank);
    const auto part = whole.sub_group({rank % 2, rank % 2 + 2});

    all_reduce(device, *part, 1, ReduceOp::sum, Purpose::norm);
    all_reduce(device, whole, 1, ReduceOp::sum, Purpose::norm);

    ASSERT_EQ(device.ledger().collectives().size(), 2U);
    EXPECT_EQ(device.ledger().collectives()[0].ranks, 2);
    EXPECT_EQ(device.ledger().collectives()[1].ranks, 4);
  });
}

}  // namespace
}  // namespace dstune::test::thread_group_test

namespace dstune::testing {

CollectivesCase collectives_case() {
  constexpr std::int64_t kLarge = 5003;  // in one piece, as any other
  const auto copy = [](const void* from, void* to, std::size_t size) {
    std::memcpy(to, from, size);
  };
  const auto run = [](int size, const CollectivesCase::Body& body) {
    test::run_on_ranks(size, [&](int rank, test::ThreadTeam& team) {
      cpu::CpuDevice device(Bytes{1} << 30U);
      test::ThreadCollectives collectives(device, team, rank);
      body(device, collectives);
    });
  };
  return {run, copy, copy, kLarge};
}

}  // namespace dstune::testing
