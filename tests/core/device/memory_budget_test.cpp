#include "core/device/memory_budget.hpp"

#include <gtest/gtest.h>

namespace dstune {
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
  EXPECT_EQ(peak.total, 800U);
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

  EXPECT_EQ(budget.peak().total, 100U);
  EXPECT_EQ(budget.peak().phase, StepPhase::setup);
  EXPECT_EQ(budget.peak().categories.at(MemoryCategory::buckets), 100U);
}

}  // namespace
}  // namespace dstune
