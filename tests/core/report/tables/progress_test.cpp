#include "core/report/tables/progress.hpp"

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::progress_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

TEST(Progress, OneLinePerExperimentKeepsTheBest) {
  Progress progress(Metric::throughput);
  const auto first = make_record(make_experiment(0, 1), make_measured(8));
  const auto failed = make_record(make_experiment(1, 2), Failed{FailureKind::timeout, "600 s"});
  const auto better = make_record(make_experiment(2, 4), make_measured(10));

  EXPECT_EQ(progress.line(first, false, 12.2),
            "[1 12s] z0_gas1_tmbspg1 -> 500.0 ms +-2.5% (95 %, 3 steps), 136.0 GFLOP/s per rank, "
            "8.0 samples/s, "
            "peak 3.00 GiB  (best so far)");
  EXPECT_EQ(progress.line(failed, false, 13, 50),
            "[2/50 13s] z1_gas1_tmbspg2 -> failed: 600 s  (best: z0_gas1_tmbspg1)");
  EXPECT_EQ(
      progress.line(better, true, 14, 50),
      "[3/50 14s] z2_gas1_tmbspg4 -> 400.0 ms +-2.5% (95 %, 3 steps), 170.0 GFLOP/s per rank, 10.0 "
      "samples/s, peak 3.00 GiB [from the journal]  (best so far)");
}

TEST(Progress, SmallerLatencyIsBetter) {
  Progress progress(Metric::latency);
  progress.line(make_record(make_experiment(0, 1), make_measured(8)), false, 1);

  const auto line = progress.line(make_record(make_experiment(1, 1), make_measured(4)), false, 2);

  EXPECT_NE(line.find("(best: z0_gas1_tmbspg1)"), std::string::npos) << line;
}

TEST(Progress, SaysNothingOfABestBeforeThereIsOne) {
  Progress progress(Metric::throughput);

  const auto line =
      progress.line(make_record(make_experiment(0, 1), Skipped{"no offload"}), false, 0);

  EXPECT_EQ(line, "[1 0s] z0_gas1_tmbspg1 -> skipped: no offload");
}

}  // namespace
}  // namespace dstune::progress_test
