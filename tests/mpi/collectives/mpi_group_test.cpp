#include "mpi/collectives/mpi_group.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace dstune::mpi_group_test {
namespace {

class MpiGroupTest : public testing::Test {
 protected:
  std::vector<int> everyone() const {
    std::vector<int> ranks(static_cast<std::size_t>(world_.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  Communicator world_ = Communicator::duplicate(MPI_COMM_WORLD);
  WorkerLink link_{world_, WorkerOptions{}};
};

TEST_F(MpiGroupTest, BroadcastReachesEveryoneAcrossSlots) {
  MpiGroup group(everyone(), 100, link_);
  const int root = group.size() - 1;
  std::vector<std::byte> data(Transfers::kSlotSize + 3);
  if (group.rank() == root) std::fill(data.begin(), data.end(), std::byte{42});

  group.broadcast(data, root);

  EXPECT_EQ(std::count(data.begin(), data.end(), std::byte{42}),
            static_cast<std::ptrdiff_t>(data.size()));
}

TEST_F(MpiGroupTest, MembersAreTheWorldsRanksInTheGroupsOrder) {
  std::vector<int> backwards = everyone();
  std::reverse(backwards.begin(), backwards.end());

  const MpiGroup group(backwards, 100, link_);

  EXPECT_EQ(group.members(), backwards);
  EXPECT_EQ(group.name_of_this_rank(), "rank " + std::to_string(world_.rank()));
}

TEST_F(MpiGroupTest, OneNoDecidesTheVoteForAll) {
  MpiGroup group(everyone(), 100, link_);

  const bool all_yes = group.vote(true);
  const bool one_no = group.vote(group.rank() != group.size() - 1);

  EXPECT_TRUE(all_yes);
  EXPECT_FALSE(one_no);
}

TEST_F(MpiGroupTest, GatherGivesTheFirstRankAllTexts) {
  MpiGroup group(everyone(), 100, link_);
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * Transfers::kSlotSize,
                       static_cast<char>('a' + rank));
  };

  const auto texts = group.gather(text_of(group.rank()));

  ASSERT_EQ(texts.size(), group.rank() == 0 ? static_cast<std::size_t>(group.size()) : 0U);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_TRUE(texts[rank] == text_of(static_cast<int>(rank))) << "of rank " << rank;
  }
}

TEST_F(MpiGroupTest, OverlappingGroupsAreMadeAgainAndAgain) {
  const std::vector<std::vector<int>> lists = {{0, 1},       {1, 2}, {2, 3},
                                               {0, 1, 2, 3}, {3, 0}, {2, 1}};
  int tag = 1000;
  int wrong_votes = 0;

  for (int round = 0; round < 20; ++round) {
    for (const auto& ranks : lists) {
      --tag;
      if (std::find(ranks.begin(), ranks.end(), world_.rank()) == ranks.end()) continue;
      MpiGroup group(ranks, tag, link_);
      if (!group.vote(true)) ++wrong_votes;
    }
  }

  EXPECT_EQ(wrong_votes, 0);
}

TEST_F(MpiGroupTest, DisjointGroupsDoNotMix) {
  const std::vector<int> mine = world_.rank() < 2 ? std::vector{0, 1} : std::vector{2, 3};
  const bool low = world_.rank() < 2;
  MpiGroup group(mine, low ? 101 : 100, link_);

  const bool vote = group.vote(low);

  EXPECT_EQ(vote, low);
}

TEST_F(MpiGroupTest, CacheMakesAGroupOncePerTag) {
  GroupCache cache(link_);

  const MpiGroup* first = &cache.get(100, everyone());
  const MpiGroup* again = &cache.get(100, everyone());
  const MpiGroup* other = &cache.get(99, everyone());

  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

}  // namespace
}  // namespace dstune::mpi_group_test
