#include "core/report/tables/metric_value.hpp"

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::metric_value_test {
namespace {

TEST(MetricValue, HasDeepSpeedsUnits) {
  const Measured measured = testing_support::make_measured(8);

  EXPECT_DOUBLE_EQ(metric_value(Metric::throughput, measured), 8);
  EXPECT_DOUBLE_EQ(metric_value(Metric::latency, measured), 0.5e6);
  EXPECT_DOUBLE_EQ(metric_value(Metric::flops, measured), 136e9);
}

TEST(MetricValue, OnlyLatencyIsBetterWhenSmaller) {
  EXPECT_TRUE(is_better(Metric::throughput, 2, 1));
  EXPECT_TRUE(is_better(Metric::flops, 2, 1));
  EXPECT_TRUE(is_better(Metric::latency, 1, 2));
  EXPECT_FALSE(is_better(Metric::latency, 1, 1));
}

}  // namespace
}  // namespace dstune::metric_value_test
