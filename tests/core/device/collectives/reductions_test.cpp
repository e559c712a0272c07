// Sums and maxima over ranks.
#include <cmath>
#include <limits>

#include "tests/core/device/collectives/collectives_suite.hpp"

namespace dstune::testing::reductions_test {
namespace {

TEST_P(CollectivesTest, AllReduceGivesEverybodyTheSerialResult) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      const Tensor tensor = rank.make_values(count, dtype());

      rank.collectives().all_reduce(tensor, op, Purpose::other);

      rank.expect(
          tensor, [&](std::int64_t i) { return reduced(op, rank.size(), i); }, "all_reduce");
    }
  });
}

TEST_P(CollectivesTest, ReduceGivesEveryRootTheSerialResult) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    for (int root = 0; root < rank.size(); ++root) {
      const Tensor tensor = rank.make_values(count, dtype());

      rank.collectives().reduce(tensor, ReduceOp::sum, root, Purpose::other);

      if (rank.rank() != root) continue;
      rank.expect(
          tensor, [&](std::int64_t i) { return reduced(ReduceOp::sum, rank.size(), i); }, "reduce");
    }
  });
}

TEST_P(CollectivesTest, ReduceScatterGivesEachRankItsPartAndKeepsTheInput) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    const std::int64_t first = count * rank.rank();
    const auto part_of_sum = [&](std::int64_t i) {
      return reduced(ReduceOp::sum, rank.size(), first + i);
    };
    const Tensor in = rank.make_values(count * rank.size(), dtype());
    const Tensor out = rank.make_room(count, dtype());
    const Tensor in_place = rank.make_values(count * rank.size(), dtype());
    const Tensor own = in_place.slice(first, count);

    rank.collectives().reduce_scatter(in, out, ReduceOp::sum, Purpose::other);
    rank.collectives().reduce_scatter(in_place, own, ReduceOp::sum, Purpose::other);

    rank.expect(out, part_of_sum, "reduce_scatter");
    rank.expect(own, part_of_sum, "reduce_scatter in place");
    rank.expect(
        in, [&](std::int64_t i) { return value_of(rank.rank(), i); }, "its input");
  });
}

TEST_P(CollectivesTest, NumbersAreCombinedInDoublePrecision) {
  on_ranks([](RankUnderTest& rank) {
    constexpr double kBeyondFp32 = 16'777'217;
    const Tensor sum = rank.make({kBeyondFp32}, DType::fp64);
    const Tensor largest = rank.make({-1.0 * rank.rank()}, DType::fp64);

    rank.collectives().all_reduce(sum, ReduceOp::sum, Purpose::other);
    rank.collectives().all_reduce(largest, ReduceOp::max, Purpose::other);

    EXPECT_EQ(rank.values(sum).at(0), rank.size() * kBeyondFp32);
    EXPECT_EQ(rank.values(largest).at(0), 0);
  });
}

TEST_P(CollectivesTest, AFlagIsSetForAllIfItIsForOne) {
  on_ranks([](RankUnderTest& rank) {
    const bool is_last = rank.rank() == rank.size() - 1;
    const Tensor raised = rank.make({is_last ? 1.0 : 0.0}, DType::uint8);
    const Tensor lowered = rank.make({0.0}, DType::uint8);

    rank.collectives().all_reduce(raised, ReduceOp::max, Purpose::other);
    rank.collectives().all_reduce(lowered, ReduceOp::max, Purpose::other);

    EXPECT_EQ(rank.values(raised).at(0), 1);
    EXPECT_EQ(rank.values(lowered).at(0), 0);
  });
}

TEST_P(CollectivesTest, SumsDoNotLoseNanAndInfinity) {
  on_ranks([](RankUnderTest& rank) {
    const bool is_last = rank.rank() == rank.size() - 1;
    const Tensor tensor = rank.make(
        {is_last ? NAN : 1.0, is_last ? std::numeric_limits<double>::infinity() : 1.0}, dtype());

    rank.collectives().all_reduce(tensor, ReduceOp::sum, Purpose::other);

    EXPECT_TRUE(std::isnan(rank.values(tensor).at(0)));
    EXPECT_TRUE(std::isinf(rank.values(tensor).at(1)));
  });
}

}  // namespace
}  // namespace dstune::testing::reductions_test
