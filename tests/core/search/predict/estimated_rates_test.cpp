#include "core/search/predict/estimated_rates.hpp"

#include <gtest/gtest.h>

namespace dstune::estimated_rates_test {
namespace {

TEST(EstimatedRates, KnowWhoOverlaps) {
  RunSettings settings;
  settings.backend = "cpu";
  EXPECT_FALSE(estimated_rates(settings).overlaps);
  settings.backend = "cuda";
  EXPECT_TRUE(estimated_rates(settings).overlaps);
}

TEST(EstimatedRates, GrowWithTheThreads) {
  RunSettings settings;
  settings.backend = "cpu";
  const double one = estimated_rates(settings).flops_per_s;
  settings.threads_per_rank = 4;
  EXPECT_EQ(estimated_rates(settings).flops_per_s, 4 * one);
}

}  // namespace
}  // namespace dstune::estimated_rates_test
