#include "core/report/tables/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/line_width.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::progress_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

TEST(Progress, OneLinePerExperimentKeepsTheBest) {
  Progress progress(Metric::throughput);
  const auto first = make_record(make_experiment(0, 1), make_measured(8));
  const auto failed = make_record(make_experiment(1, 2), Failed{FailureKind::timeout, "600 s"});
  const auto better = make_record(make_experiment(2, 4), make_measured(10));

  EXPECT_EQ(progress.line(first, false, 12.2),
            "[1 12s] z0_gas1_tmbspg1 -> 500.0 ms +-2.5 %, 8.0 samples/s, 3.00 GiB  (best so far)");
  progress.expect({.experiments = 49}, 12.2);
  EXPECT_EQ(progress.line(failed, false, 13),
            "[2/~50 13s] z1_gas1_tmbspg2 -> failed: 600 s  (best: z0_gas1_tmbspg1)");
  EXPECT_EQ(progress.line(better, true, 14),
            "[3/~50 14s] z2_gas1_tmbspg4 -> 400.0 ms +-2.5 %, 10.0 samples/s, 3.00 GiB [journal]  "
            "(best so far)");
}

TEST(Progress, SmallerLatencyIsBetter) {
  Progress progress(Metric::latency);
  progress.line(make_record(make_experiment(0, 1), make_measured(8)), false, 1);

  const auto line = progress.line(make_record(make_experiment(1, 1), make_measured(4)), false, 2);

  EXPECT_THAT(line, HasSubstr("(best: z0_gas1_tmbspg1)"));
}

TEST(Progress, ShowsWhatIsTuned) {
  const auto record = make_record(make_experiment(0, 1), make_measured(8));

  EXPECT_THAT(Progress(Metric::flops).line(record, false, 1), HasSubstr(", 136.0 GFLOP/s, "));
  EXPECT_THAT(Progress(Metric::tokens).line(record, false, 1), HasSubstr(" tokens/s, "));
}

TEST(Progress, SaysNothingOfABestBeforeThereIsOne) {
  Progress progress(Metric::throughput);

  const auto line =
      progress.line(make_record(make_experiment(0, 1), Skipped{"no offload"}), false, 0);

  EXPECT_EQ(line, "[1 0s] z0_gas1_tmbspg1 -> skipped: no offload");
}

class ProgressOfWidth : public testing::TestWithParam<std::size_t> {};

TEST_P(ProgressOfWidth, HasNoWiderLine) {
  Progress progress(Metric::throughput, std::nullopt, GetParam());
  progress.expect({.experiments = 50, .each = 2, .side_by_side = 1}, 0);
  auto experiment = make_experiment(3, 16);
  experiment.name += "_rbs500000000_agbs500000000_overlap_again6";
  const auto named = make_record(experiment, make_measured(1234.5));
  const auto failed = make_record(experiment, Failed{FailureKind::error, std::string(300, 'x')});

  progress.begins(experiment.name, 1);
  const std::string first = progress.first_line(experiment.name);
  const std::string line = progress.line(named, false, 123456);
  const std::string second = progress.line(named, true, 123456);
  const std::string of_failure = progress.line(failed, false, 123456);
  progress.begins(experiment.name, 1);
  const std::string running = progress.running_line(123456);

  for (const auto& each : {first, line, second, of_failure, running}) {
    EXPECT_LE(each.size(), GetParam()) << each;
  }
  EXPECT_THAT(line, HasSubstr(", 1234.5 samples/s, 3.00 GiB"));
  EXPECT_THAT(of_failure, HasSubstr("xxx...xxx"));
}

INSTANTIATE_TEST_SUITE_P(Progress, ProgressOfWidth, testing::Values(90U, kLineWidth));

TEST(Progress, ANarrowTerminalKeepsNamesAndSaysLessOfTheBest) {
  const auto line = [](std::size_t columns) {
    const auto record = make_record(make_experiment(0, 1), make_measured(8));
    return Progress(Metric::throughput, std::nullopt, columns).line(record, false, 12);
  };
  const std::string numbers =
      "[1 12s] z0_gas1_tmbspg1 -> 500.0 ms +-2.5 %, 8.0 samples/s, 3.00 GiB";

  EXPECT_EQ(line(numbers.size() + 15), numbers + "  (best so far)");
  EXPECT_EQ(line(numbers.size() + 14), numbers + "  (best)");
  EXPECT_EQ(line(numbers.size() + 2), numbers + " *");
}

TEST(Progress, ANarrowTerminalKeepsTheFirstName) {
  Progress progress(Metric::throughput, std::nullopt, 70);
  progress.expect({.experiments = 16, .each = 1}, 0);

  EXPECT_EQ(progress.first_line("z0_gas2_tmbspg2"),
            "first: z0_gas2_tmbspg2, of about 16; predicted: 1 s each, 16 s in all");
}

TEST(Progress, WhatRunsIsFollowedByTheBestIfItsNumbersHaveRoom) {
  const auto running = [](std::size_t columns) {
    Progress progress(Metric::throughput, std::nullopt, columns);
    progress.line(make_record(make_experiment(0, 1), make_measured(8)), false, 12);
    progress.begins("z1", 12);
    return progress.running_line(13);
  };

  EXPECT_EQ(running(80), "[1 13s] z1 since 1 s; best 500.0 ms, 8.0 samples/s by z0_gas1_tmbspg1");
  EXPECT_EQ(running(60), "[1 13s] z1 since 1 s; best 500.0 ms, 8.0 samples/s");
  EXPECT_EQ(running(45), "[1 13s] z1 since 1 s");
}

TEST(Progress, SaysWhatBeginsAndHowLongItMayTake) {
  Progress progress(Metric::throughput);
  EXPECT_EQ(progress.first_line("z0"), "first: z0; how many and for how long is not known yet");

  progress.expect({.experiments = 40}, 5);
  EXPECT_EQ(progress.first_line("z0"),
            "first: z0, of about 40 experiments; time per experiment not known yet");

  progress.expect({.experiments = 40, .each = 8, .side_by_side = 2}, 5);
  EXPECT_EQ(progress.first_line("z0"),
            "first: z0, of about 40 experiments; predicted: 8 s each, 3 min in all");
}

TEST(Progress, FindsTheTimeLeftByThePaceOfThisRun) {
  Progress progress(Metric::throughput);
  auto record = make_record(make_experiment(0, 1), make_measured(8));
  progress.expect({.experiments = 5, .each = 100}, 10);
  EXPECT_EQ(progress.standing(10).time_left, 500) << "as predicted";

  progress.line(record, true, 10);
  EXPECT_EQ(progress.standing(10).time_left, 400) << "the journal says nothing of the pace";
  record.started = 10;
  progress.line(record, false, 30);

  EXPECT_EQ(progress.standing(30).time_left, 60) << "20 s for each of three";
  EXPECT_EQ(progress.standing(35).time_left, 55);
  EXPECT_EQ(progress.standing(90).time_left, 40) << "no more than one runs longer than expected";
  EXPECT_EQ(progress.standing(30).expected, 5);
}

TEST(Progress, ATimeBudgetIsTheMostThatIsLeft) {
  Progress progress(Metric::throughput, 60);
  EXPECT_EQ(progress.standing(10).time_left, 50) << "nothing else is known";

  progress.expect({.experiments = 5, .each = 100}, 10);
  EXPECT_EQ(progress.standing(10).time_left, 50);
}

TEST(Progress, KnowsWhatRunsNow) {
  Progress progress(Metric::throughput);
  const auto record = make_record(make_experiment(0, 1), make_measured(8));
  progress.begins("machine", 1);
  progress.begins("z0_gas1_tmbspg1", 2);
  progress.ends("machine");

  EXPECT_EQ(progress.running_line(5), "[0 5s] z0_gas1_tmbspg1 since 3 s");
  EXPECT_EQ(progress.standing(5).running.front().since, 2);

  progress.line(record, false, 6);
  EXPECT_THAT(progress.standing(6).running, IsEmpty());
  EXPECT_EQ(progress.running_line(6),
            "[1 6s] chooses the next; best 500.0 ms, 8.0 samples/s by z0_gas1_tmbspg1");
}

}  // namespace
}  // namespace dstune::progress_test
