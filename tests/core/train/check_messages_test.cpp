#include "core/train/check_messages.hpp"

#include <cstddef>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::check_messages_test {
namespace {

using testing::SizeIs;

TEST(PairRounds, HaveEveryPairOfUpToFourRanksOnce) {
  for (int size = 1; size <= 4; ++size) {
    std::set<std::pair<int, int>> pairs;
    for (int round = 0; round < pair_rounds(size); ++round) {
      for (int rank = 0; rank < size; ++rank) {
        const int partner = partner_of(rank, round, size);
        if (partner < 0) continue;
        EXPECT_EQ(partner_of(partner, round, size), rank);
        EXPECT_NE(partner, rank);
        if (rank > partner) continue;
        EXPECT_TRUE(pairs.emplace(rank, partner).second);
      }
    }
    EXPECT_THAT(pairs, SizeIs(static_cast<std::size_t>(size * (size - 1) / 2)));
  }
}

TEST(PairRounds, AreADozenForThousands) {
  EXPECT_EQ(pair_rounds(4096), 12);
  for (const int size : {5, 13, 4096}) {
    for (int rank = 0; rank < size; ++rank) {
      int partners = 0;
      for (int round = 0; round < pair_rounds(size); ++round) {
        const int partner = partner_of(rank, round, size);
        if (partner < 0) continue;
        ++partners;
        EXPECT_EQ(partner_of(partner, round, size), rank);
      }
      EXPECT_GT(partners, 0) << rank << " of " << size;
    }
  }
}

}  // namespace
}  // namespace dstune::check_messages_test
