#include "core/device/memory/memory_budget.hpp"

#include <gtest/gtest.h>

namespace dstune::memory_budget_test {
namespace {

TEST(MemoryBudget, PeaksKnowTheirPhase) {
  MemoryBudget budget(1000);

  budget.enter(StepPhase::backward);
  budget.reserve(MemoryCategory::gradients, 300);
  {
    const PhaseScope reduction(budget, StepPhase::reduction);
    budget.reserve(MemoryCategory::temporaries, 500);
    budget.release(MemoryCategory::temporaries, 500);
  }
  budget.reserve(MemoryCategory::gradients, 100);
  budget.enter(StepPhase::update);
  budget.reserve(MemoryCategory::temporaries, 400);

  const PeakMemory& peak = budget.peak();
  EXPECT_EQ(peak.allocated, 800U);
  EXPECT_EQ(peak.phase, StepPhase::reduction);
  EXPECT_EQ(peak.phases[static_cast<std::size_t>(MemoryCategory::gradients)], StepPhase::backward);
  EXPECT_EQ(peak.phases[static_cast<std::size_t>(MemoryCategory::temporaries)],
            StepPhase::reduction);
}

TEST(MemoryBudget, ResetPeakStartsFromWhatIsInUse) {
  MemoryBudget budget(1000);
  budget.enter(StepPhase::backward);
  budget.reserve(MemoryCategory::buckets, 600);
  budget.release(MemoryCategory::buckets, 500);

  budget.enter(StepPhase::setup);
  budget.reset_peak();

  EXPECT_EQ(budget.peak().allocated, 100U);
  EXPECT_EQ(budget.peak().phase, StepPhase::setup);
  EXPECT_EQ(budget.peak().categories.at(MemoryCategory::buckets), 100U);
}

TEST(MemoryBudget, CountsWhatIsInFlightAsActiveAndNotAsAllocated) {
  MemoryBudget budget(1000);
  budget.reserve(MemoryCategory::parameters, 600);
  budget.release(MemoryCategory::parameters, 600);
  budget.begin_flight(600);

  EXPECT_EQ(budget.use().total(), 0U);
  EXPECT_EQ(budget.in_use(), 600U);
  EXPECT_TRUE(budget.has_room(400));
  EXPECT_FALSE(budget.has_room(401));
  budget.reserve(MemoryCategory::gradients, 300);

  EXPECT_EQ(budget.peak().allocated, 600U);
  EXPECT_EQ(budget.peak().active, 900U);
  EXPECT_EQ(budget.peak().in_flight(), 300U);
  EXPECT_EQ(budget.peak().counted(), 600U);

  budget.end_flight(600);

  EXPECT_EQ(budget.in_flight(), 0U);
  EXPECT_TRUE(budget.has_room(700));
  budget.reset_peak();
  EXPECT_EQ(budget.peak().active, 300U);
}

constexpr Bytes kMiB = Bytes{1} << 20U;

TEST(CachingBudget, CountsWhatWasAskedForAndWhatIsReserved) {
  MemoryBudget budget(100 * kMiB);
  budget.count_as(AllocatorModel::caching);

  const auto small = budget.reserve(MemoryCategory::gradients, 1000);
  const auto large = budget.reserve(MemoryCategory::buckets, 3 * kMiB);
  budget.release(MemoryCategory::buckets, 3 * kMiB, large);

  EXPECT_EQ(budget.in_use(), 1000U);
  EXPECT_EQ(budget.reserved(), 22 * kMiB);
  EXPECT_EQ(budget.peak().allocated, 3 * kMiB + 1000);
  EXPECT_EQ(budget.peak().reserved, 22 * kMiB);
  EXPECT_EQ(budget.peak().counted(), 22 * kMiB);

  budget.release(MemoryCategory::gradients, 1000, small);
  budget.release_cached();
  budget.reset_peak();

  EXPECT_EQ(budget.peak().reserved, 0U);
}

TEST(CachingBudget, SaysWhatIsInUseAndWhatIsReservedWhereItIsFull) {
  MemoryBudget budget(22 * kMiB - 1);
  budget.count_as(AllocatorModel::caching);
  budget.reserve(MemoryCategory::gradients, 1000);

  try {
    budget.reserve(MemoryCategory::buckets, 3 * kMiB);
    FAIL() << "20 MiB more fit";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.requested, 20 * kMiB);
    EXPECT_EQ(error.in_use, 1000U);
    EXPECT_EQ(error.reserved, 2 * kMiB);
    EXPECT_EQ(error.limit, 22 * kMiB - 1);
    EXPECT_STREQ(
        error.what(),
        "out of memory: requested 20.00 MiB for buckets with 1000 B allocated and 2.00 MiB of "
        "22.00 MiB reserved");
  }
  EXPECT_EQ(budget.in_use(), 1000U);
}

/// Gives the same place for every segment, which nobody reads; refuses as often as it is told.
class RefusingSegments final : public SegmentSource {
 public:
  Segment make(Bytes size) override {
    if (refusals > 0) {
      --refusals;
      return {nullptr, "3 MiB are free"};
    }
    held += size;
    return {this, ""};
  }
  void give_back(void* /*data*/, Bytes size) noexcept override { held -= size; }

  int refusals = 0;
  Bytes held = 0;
};

class SegmentBudgetTest : public testing::Test {
 protected:
  SegmentBudgetTest() {
    budget_.take_segments_from(&segments_);
    budget_.count_as(AllocatorModel::caching);
  }

  RefusingSegments segments_;
  MemoryBudget budget_{100 * kMiB};
};

TEST_F(SegmentBudgetTest, BlocksHaveMemory) {
  EXPECT_TRUE(budget_.holds_segments());

  const auto block = budget_.reserve(MemoryCategory::buckets, 30 * kMiB);

  EXPECT_EQ(budget_.data(block), &segments_);
  EXPECT_EQ(budget_.data(CachingModel::kNoBlock), nullptr);
  budget_.release(MemoryCategory::buckets, 30 * kMiB, block);
}

TEST_F(SegmentBudgetTest, GivesTheCacheBackAndAsksOnceMoreWhereASegmentIsRefused) {
  const auto block = budget_.reserve(MemoryCategory::buckets, 30 * kMiB, Stream::gather);
  budget_.release(MemoryCategory::buckets, 30 * kMiB, block);
  segments_.refusals = 1;

  const auto other = budget_.reserve(MemoryCategory::gradients, 10 * kMiB);

  EXPECT_EQ(segments_.held, 10 * kMiB);
  EXPECT_EQ(budget_.reserved(), 10 * kMiB);
  budget_.release(MemoryCategory::gradients, 10 * kMiB, other);
}

TEST_F(SegmentBudgetTest, SaysWhyASegmentIsRefusedAlthoughTheLimitIsNotReached) {
  segments_.refusals = 2;

  try {
    budget_.reserve(MemoryCategory::buckets, 3 * kMiB);
    FAIL() << "there was a segment";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.requested, 20 * kMiB);
    EXPECT_EQ(error.refusal, "3 MiB are free");
    EXPECT_EQ(error.category, MemoryCategory::buckets);
  }
  EXPECT_EQ(budget_.in_use(), 0U);
  EXPECT_EQ(budget_.reserved(), 0U);
}

TEST_F(SegmentBudgetTest, TriesWithoutGivingTheCacheBack) {
  const auto block = budget_.reserve(MemoryCategory::buckets, 30 * kMiB, Stream::gather);
  budget_.release(MemoryCategory::buckets, 30 * kMiB, block);
  segments_.refusals = 1;

  EXPECT_FALSE(budget_.try_reserve(MemoryCategory::gradients, 10 * kMiB));
  EXPECT_FALSE(budget_.try_reserve(MemoryCategory::gradients, 90 * kMiB));

  EXPECT_EQ(budget_.in_use(), 0U);
  EXPECT_EQ(segments_.held, 30 * kMiB);
}

TEST_F(SegmentBudgetTest, CountingExactlyNeedsNoSegments) {
  budget_.count_as(AllocatorModel::exact);

  EXPECT_FALSE(budget_.holds_segments());
  EXPECT_EQ(budget_.data(budget_.reserve(MemoryCategory::buckets, 100 * kMiB)), nullptr);
}

TEST(ExactBudget, ReservesNothingBesideWhatIsInUse) {
  MemoryBudget budget(1000);

  budget.reserve(MemoryCategory::gradients, 1000);

  EXPECT_EQ(budget.reserved(), 0U);
  EXPECT_EQ(budget.peak().reserved, 0U);
  EXPECT_EQ(budget.peak().counted(), 1000U);
}

}  // namespace
}  // namespace dstune::memory_budget_test
