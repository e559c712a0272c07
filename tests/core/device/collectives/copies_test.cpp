// What ranks send each other as it is, and calls that are one launch.
#include <stdexcept>

#include "tests/core/device/collectives/collectives_suite.hpp"

namespace dstune::testing::copies_test {
namespace {

TEST_P(CollectivesTest, AllGatherWorksInPlaceAndFromElsewhere) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    const auto expected = [&](std::int64_t i) {
      return value_of(static_cast<int>(i / count), i % count);
    };
    const Tensor in = rank.make_values(count, dtype());
    const Tensor out = rank.make_room(count * rank.size(), dtype());

    rank.collectives().all_gather(in, out, Purpose::other);

    rank.expect(out, expected, "all_gather");

    const Tensor own = out.slice(count * rank.rank(), count);

    rank.collectives().all_gather(own, out, Purpose::other);

    rank.expect(out, expected, "all_gather in place");
  });
}

TEST_P(CollectivesTest, AllToAllGivesEachRankItsPartsAndKeepsTheInput) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    const Tensor in = rank.make_values(count * rank.size(), dtype());
    const Tensor out = rank.make_room(count * rank.size(), dtype());

    rank.collectives().all_to_all(in, out, Purpose::other);

    rank.expect(
        out,
        [&](std::int64_t i) {
          return value_of(static_cast<int>(i / count), count * rank.rank() + i % count);
        },
        "all_to_all");
    rank.expect(
        in, [&](std::int64_t i) { return value_of(rank.rank(), i); }, "its input");
  });
}

TEST_P(CollectivesTest, BroadcastCopiesEveryRoot) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    for (int root = 0; root < rank.size(); ++root) {
      const Tensor tensor = rank.make_values(count, dtype());

      rank.collectives().broadcast(tensor, root, Purpose::other);

      rank.expect(
          tensor, [&](std::int64_t i) { return value_of(root, i); }, "broadcast");
    }
  });
}

TEST_P(CollectivesTest, QuantizedValuesAreGatheredAndExchangedAsTheyAre) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    const Tensor in = rank.make_values(count * rank.size(), DType::int8);
    const Tensor exchanged = rank.make_room(count * rank.size(), DType::int8);
    const Tensor gathered = rank.make_room(count * rank.size(), DType::int8);

    rank.collectives().all_to_all(in, exchanged, Purpose::other);
    rank.collectives().all_gather(in.slice(0, count), gathered, Purpose::other);

    rank.expect(
        exchanged,
        [&](std::int64_t i) {
          return value_of(static_cast<int>(i / count), count * rank.rank() + i % count);
        },
        "all_to_all");
    rank.expect(
        gathered, [&](std::int64_t i) { return value_of(static_cast<int>(i / count), i % count); },
        "all_gather");
  });
}

TEST_P(CollectivesTest, CoalescedCallsAreOneLaunchWithTheResultsOfEach) {
  for_every_group([](RankUnderTest& rank, std::int64_t count) {
    std::vector<Tensor> gathered;
    const Tensor in = rank.make_values(count, dtype());
    for (int i = 0; i < 3; ++i) gathered.push_back(rank.make_room(count * rank.size(), dtype()));

    CoalescedCalls calls(rank.collectives());
    for (const Tensor& out : gathered) rank.collectives().all_gather(in, out, Purpose::other);
    rank.device().host_wait(calls.end());

    for (const Tensor& out : gathered) {
      rank.expect(
          out, [&](std::int64_t i) { return value_of(static_cast<int>(i / count), i % count); },
          "coalesced all_gather");
    }
  });
}

TEST_P(CollectivesTest, RefusesAPartWithoutItself) {
  on_ranks([](RankUnderTest& rank) {
    EXPECT_THROW(rank.collectives().sub_group({rank.rank() + 1}), std::invalid_argument);
    EXPECT_THROW(rank.collectives().sub_group({rank.rank(), rank.size()}), std::invalid_argument);
  });
}

}  // namespace
}  // namespace dstune::testing::copies_test
