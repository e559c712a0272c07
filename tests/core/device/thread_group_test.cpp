// The in-process Group and Collectives of the tests (tests/support) keep their contracts.
#include "tests/support/thread_group.hpp"

#include <algorithm>
#include <stdexcept>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::test {
namespace {

constexpr Bytes kLimit = Bytes{1} << 20U;

/// One rank's tensors of small integers, exact in every type.
class Rank {
 public:
  Rank(ThreadTeam& team, int rank, DType dtype)
      : device_(kLimit), dtype_(dtype), collectives(device_, team, rank) {}

  Tensor make(const std::vector<float>& values) {
    buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries,
                                   static_cast<std::int64_t>(values.size()), dtype_));
    device_.write(values, buffers_.back().tensor(dtype_));
    return buffers_.back().tensor(dtype_);
  }
  std::vector<float> values(Tensor tensor) {
    std::vector<float> result(static_cast<std::size_t>(tensor.numel));
    device_.read(tensor, result);
    return result;
  }

  Device& device() { return device_; }

 private:
  cpu::CpuDevice device_;
  DType dtype_;
  std::vector<Buffer> buffers_;

 public:
  ThreadCollectives collectives;
};

class ThreadCollectivesTest : public testing::TestWithParam<std::tuple<int, DType>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  float sum_of_ranks() const { return static_cast<float>(size() * (size() - 1)) / 2; }

  void on_ranks(const std::function<void(Rank& own, int rank)>& body) const {
    run_on_ranks(size(), [&](int rank, ThreadTeam& team) {
      Rank own(team, rank, std::get<1>(GetParam()));
      body(own, rank);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadCollectivesTest,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(DType::fp32, DType::bf16)));

TEST_P(ThreadCollectivesTest, AllReduceGivesEverybodyTheSumOrMaximum) {
  on_ranks([&](Rank& own, int rank) {
    const Tensor sum = own.make({static_cast<float>(rank), 1});
    const Tensor largest = own.make({static_cast<float>(-rank), static_cast<float>(rank)});

    own.collectives.all_reduce(sum, ReduceOp::sum, Purpose::other);
    own.collectives.all_reduce(largest, ReduceOp::max, Purpose::other);

    EXPECT_EQ(own.values(sum), (std::vector{sum_of_ranks(), static_cast<float>(size())}));
    EXPECT_EQ(own.values(largest), (std::vector{0.0F, static_cast<float>(size() - 1)}));
  });
}

TEST_P(ThreadCollectivesTest, ReduceGivesTheRootTheSum) {
  const int root = size() - 1;

  on_ranks([&](Rank& own, int rank) {
    const Tensor tensor = own.make({static_cast<float>(rank), 2});

    own.collectives.reduce(tensor, ReduceOp::sum, root, Purpose::other);

    if (rank == root) {
      EXPECT_EQ(own.values(tensor),
                (std::vector{sum_of_ranks(), 2.0F * static_cast<float>(root + 1)}));
    }
  });
}

TEST_P(ThreadCollectivesTest, ReduceScatterGivesEveryRankItsPartInPlace) {
  on_ranks([&](Rank& own, int rank) {
    std::vector<float> values;
    for (int part = 0; part < 2 * size(); ++part) values.push_back(static_cast<float>(part + rank));
    const Tensor all = own.make(values);
    const Tensor part = all.slice(2 * rank, 2);

    own.collectives.reduce_scatter(all, part, ReduceOp::sum, Purpose::other);

    const float first = static_cast<float>(size() * 2 * rank) + sum_of_ranks();
    EXPECT_EQ(own.values(part), (std::vector{first, first + static_cast<float>(size())}));
  });
}

TEST_P(ThreadCollectivesTest, AllGatherPutsThePartsInTheOrderOfRanksInPlace) {
  on_ranks([&](Rank& own, int rank) {
    const Tensor all = own.make(std::vector<float>(static_cast<std::size_t>(size()), -1));
    const Tensor part = all.slice(rank, 1);
    own.collectives.broadcast(own.make({0}), 0, Purpose::other);  // not the first call of a team
    const Tensor mine = own.make({static_cast<float>(10 + rank)});

    own.collectives.all_gather(mine, all, Purpose::other);
    own.collectives.all_gather(part, all, Purpose::other);

    std::vector<float> expected;
    for (int next = 0; next < size(); ++next) expected.push_back(static_cast<float>(10 + next));
    EXPECT_EQ(own.values(all), expected);
  });
}

TEST_P(ThreadCollectivesTest, AllToAllGivesEveryRankItsPartsInTheOrderOfRanks) {
  on_ranks([&](Rank& own, int rank) {
    std::vector<float> sent;
    for (int to = 0; to < size(); ++to) {
      sent.push_back(static_cast<float>(10 * rank + to));
      sent.push_back(static_cast<float>(-to));
    }
    const Tensor in = own.make(sent);
    const Tensor out = own.make(std::vector<float>(sent.size(), 99));

    own.collectives.all_to_all(in, out, Purpose::other);

    std::vector<float> expected;
    for (int from = 0; from < size(); ++from) {
      expected.push_back(static_cast<float>(10 * from + rank));
      expected.push_back(static_cast<float>(-rank));
    }
    EXPECT_EQ(own.values(out), expected);
    EXPECT_EQ(own.values(in), sent);
  });
}

TEST_P(ThreadCollectivesTest, BroadcastGivesEverybodyTheRootsValues) {
  const int root = size() / 2;

  on_ranks([&](Rank& own, int rank) {
    const Tensor tensor = own.make({static_cast<float>(rank), 7});

    own.collectives.broadcast(tensor, root, Purpose::other);

    EXPECT_EQ(own.values(tensor), (std::vector{static_cast<float>(root), 7.0F}));
  });
}

TEST_P(ThreadCollectivesTest, ScalarsAreCombinedOverTheRanks) {
  on_ranks([&](Rank& own, int rank) {
    const double sum = all_reduce(own.device(), own.collectives, rank + 0.5, ReduceOp::sum);
    const double largest = all_reduce(own.device(), own.collectives, -rank, ReduceOp::max);

    EXPECT_EQ(sum, sum_of_ranks() + 0.5 * size());
    EXPECT_EQ(largest, 0);
  });
}

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

TEST(ThreadCollectives, RefusesAPartWithoutItself) {
  run_on_ranks(2, [](int rank, ThreadTeam& team) {
    cpu::CpuDevice device(Bytes{1} << 20U);
    ThreadCollectives whole(device, team, rank);

    EXPECT_THROW(whole.sub_group({1 - rank}), std::invalid_argument);
    EXPECT_THROW(whole.sub_group({rank, 2}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace dstune::test
