#include "core/report/tables/speedup.hpp"

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::speedup_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_measured;

Record run(int stage, double samples_per_s, int repetition = 0) {
  Experiment experiment = make_experiment(stage, 1);
  experiment.repetition = repetition;
  if (repetition > 0) experiment.name += "_again" + std::to_string(repetition);
  return testing_support::make_record(experiment, make_measured(samples_per_s));
}

constexpr const char* kFast = "z2_gas1_tmbspg1";
constexpr const char* kSlow = "z1_gas1_tmbspg1";

TEST(Speedup, IsThatOfTheRepetitionsWithTheIntervalsOfBoth) {
  const std::vector<Record> records = {run(1, 40),    run(2, 90),    run(1, 20, 1),  run(2, 30, 1),
                                       run(1, 20, 2), run(2, 30, 2), run(1, 20.2, 3)};

  const auto over = speedup(records, Metric::throughput, kFast, kSlow);

  ASSERT_TRUE(over && over->interval);
  EXPECT_NEAR(over->ratio, 1.495, 0.001);
  EXPECT_GT(*over->interval, 0);
  EXPECT_LT(*over->interval, 0.05);
}

TEST(Speedup, OfLatencyIsTheQuotientOfTheTimes) {
  const auto over = speedup({run(1, 20), run(2, 30)}, Metric::latency, kFast, kSlow);

  ASSERT_TRUE(over);
  EXPECT_NEAR(over->ratio, 1.5, 1e-6);
}

TEST(Speedup, NeedsBoth) {
  Record lost = run(1, 20);
  lost.outcome = Skipped{"no"};

  EXPECT_FALSE(speedup({lost, run(2, 30)}, Metric::throughput, kFast, kSlow));
  EXPECT_FALSE(speedup({run(2, 30)}, Metric::throughput, kFast, kSlow));
}

TEST(Speedup, SaysItsInterval) {
  EXPECT_EQ(to_text(Speedup{1.312, 0.0231}), "1.31 +- 0.03 times");
  EXPECT_EQ(to_text(Speedup{1.312}), "1.31 times");
}

TEST(FindConfiguration, IsNoRepetition) {
  const std::vector<Record> records = {run(1, 20, 1), run(1, 20), run(2, 30)};

  EXPECT_EQ(find_configuration(records, records[2].experiment.ds_config), &records[2]);
  EXPECT_EQ(find_configuration(records, records[0].experiment.ds_config), &records[1]);
  EXPECT_EQ(find_configuration({records[2]}, records[0].experiment.ds_config), nullptr);
}

}  // namespace
}  // namespace dstune::speedup_test
