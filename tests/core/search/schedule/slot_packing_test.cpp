#include "core/search/schedule/slot_packing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::slot_packing_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const Worker kA1{1, "a"};
const Worker kA2{2, "a"};
const Worker kA3{3, "a"};
const Worker kB4{4, "b"};
const Worker kB5{5, "b"};
const Worker kC6{6, "c"};

TEST(ChooseSlot, TakesTheHostThatFitsBest) {
  const std::vector<Worker> idle = {kA1, kA2, kA3, kB4, kB5, kC6};

  EXPECT_THAT(choose_slot(idle, 1), ElementsAre(kC6));
  EXPECT_THAT(choose_slot(idle, 2), ElementsAre(kB4, kB5));
  EXPECT_THAT(choose_slot(idle, 3), ElementsAre(kA1, kA2, kA3));
}

TEST(ChooseSlot, SpansAsFewHostsAsPossible) {
  const std::vector<Worker> idle = {kA1, kA2, kA3, kB4, kB5, kC6};

  EXPECT_THAT(choose_slot(idle, 4), ElementsAre(kA1, kA2, kA3, kC6));
  EXPECT_THAT(choose_slot(idle, 5), ElementsAre(kA1, kA2, kA3, kB4, kB5));
}

TEST(ChooseSlot, IsEmptyIfThereAreTooFewWorkers) {
  EXPECT_THAT(choose_slot({kA1, kB4}, 3), IsEmpty());
}

TEST(ChooseSlot, AvoidsRanksWhereThereAreEnoughOthers) {
  EXPECT_THAT(choose_slot({kA1, kA2, kB4, kB5}, 2, {1, 2}), ElementsAre(kB4, kB5));
}

TEST(ChooseSlot, TakesAvoidedRanksLastWhereThereAreTooFewOthers) {
  EXPECT_THAT(choose_slot({kA1, kA2, kA3}, 2, {1, 2}), ElementsAre(kA1, kA3));
}

TEST(ChooseSlot, TakesAnAvoidedRankRatherThanAnotherHost) {
  EXPECT_THAT(choose_slot({kA1, kA3, kB4}, 2, {1}), ElementsAre(kA1, kA3)) << "not {3, 4}";
}

TEST(ChooseSlot, TakesASpareOfTheSameHost) {
  const std::vector<Worker> without_rank_2 = {kA1, kA3, {4, "a"}, {5, "b"}, {6, "b"}, {7, "b"}};

  EXPECT_THAT(ranks_of(choose_slot(without_rank_2, 3, {1, 3})), ElementsAre(5, 6, 7));
  EXPECT_THAT(ranks_of(choose_slot(without({without_rank_2}, {7}), 3, {1, 3})),
              ElementsAre(1, 3, 4));
}

TEST(ChooseTrustedSlot, ConcedesNoMoreThanItMust) {
  const auto slot = [](const std::vector<Worker>& from) {
    const Doubts doubts{.tried = {}, .own = {1}, .suspects = {1, 2}, .slow = {3}};
    return choose_trusted_slot(from, 1, doubts);
  };
  const auto concessions = [&](const std::vector<Worker>& from) { return slot(from).concessions; };

  EXPECT_EQ(concessions({kA1, kA2, kA3, kB4}), 0);
  EXPECT_EQ(concessions({kA1, kA2, kA3}), 1) << "the slow one";
  EXPECT_EQ(concessions({kA1, kA2}), 2) << "another's culprit";
  EXPECT_EQ(concessions({kA1}), 3) << "its own";
  EXPECT_THAT(slot({kA1, kA2, kA3, kB4}).workers, ElementsAre(kB4));
  EXPECT_THAT(slot({kA1, kA2}).workers, ElementsAre(kA2));
  EXPECT_THAT(slot({}).workers, IsEmpty());
}

TEST(ChooseTrustedSlot, TakesASlowWorkerRatherThanAnotherHost) {
  const Slot slot = choose_trusted_slot({kA1, kA2, kB4}, 2, {{}, {}, {}, {2}});

  EXPECT_THAT(slot.workers, ElementsAre(kA1, kA2));
  EXPECT_EQ(slot.concessions, 1);
}

TEST(CountSlots, LeavesOutSlotsThatSpanMoreHostsThanTheFirst) {
  EXPECT_EQ(count_slots({kA1, kA2, kA3, kB4, kB5}, 2), 2);
  EXPECT_EQ(count_slots({kA1, kA2, kA3, kB4, kB5, kC6}, 3), 1);
  EXPECT_EQ(count_slots({kA1, kB4}, 3), 0);
}

TEST(FewestHosts, CountsHostsOfTheBestSlot) {
  EXPECT_EQ(fewest_hosts({kA1, kA2, kB4}, 2), 1);
  EXPECT_EQ(fewest_hosts({kA1, kA2, kB4}, 3), 2);
  EXPECT_EQ(fewest_hosts({kA1}, 2), 0);
}

}  // namespace
}  // namespace dstune::slot_packing_test
