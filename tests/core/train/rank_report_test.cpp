#include "core/train/rank_report.hpp"

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/families/families.hpp"
#include "tests/support/make_ledger.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::rank_report_test {
namespace {

// Forward, backward and optimizer take multiples of `tag`, so that they tell whose they are.
StepReport step_of(Seconds total, double tag) {
  StepReport step;
  step.total = total;
  step.forward = tag;
  step.backward = 2 * tag;
  step.optimizer = 3 * tag;
  return step;
}

RankReport report_of(double tag, const std::vector<double>& totals) {
  RankReport report;
  for (const double total : totals) report.add(step_of(total, tag), 4 * tag, tag);
  return report;
}

Outcome merge(const std::vector<RankReport>& reports) {
  test::TinyExperiment tiny;
  tiny.ranks = static_cast<int>(reports.size());
  tiny.micro_batch = 3;
  tiny.accumulation_steps = 2;
  const Experiment experiment = tiny.make();
  return merge_reports(reports, experiment, experiment.ds_config.step());
}

Measured merge_measured(const std::vector<RankReport>& reports) {
  return std::get<Measured>(merge(reports));
}

TEST(RankReport, SumsUpAsTheSlowestRankOfEveryStep) {
  const Measured merged = merge_measured({report_of(1, {5, 2, 2}), report_of(10, {4, 3, 6})});

  EXPECT_EQ(merged.steps, 3);
  EXPECT_EQ(merged.step_time, summarize({5, 3, 6}));
}

TEST(RankReport, NoticesTwoModesOfTheSlowestRanks) {
  const Measured merged = merge_measured(
      {report_of(1, {1, 1, 1, 1, 1, 1, 1, 1, 1}), report_of(1, {1, 1, 2, 1, 1, 2, 1, 1, 2})});

  EXPECT_EQ(merged.slow_steps, (SlowPart{3, 1}));
}

// Ranks 0, 1, 1 are slowest: the median of their forward times 1, 10, 10 is rank 1's.
TEST(RankReport, SaysHowTheSlowestRankSpentTheStep) {
  const Measured merged = merge_measured({report_of(1, {5, 2, 2}), report_of(10, {4, 3, 6})});

  EXPECT_EQ(merged.forward_time, 10);
  EXPECT_EQ(merged.backward_time, 20);
  EXPECT_EQ(merged.optimizer_time, 30);
  EXPECT_EQ(merged.communication_time, 40);
}

TEST(RankReport, HasEachRanksOwnTimeWithoutItsWaiting) {
  const Measured merged = merge_measured({report_of(1, {5, 2, 2}), report_of(0.5, {4, 3, 6})});

  EXPECT_EQ(merged.compute_times, (std::vector<Seconds>{1, 3.5}));
}

TEST(RankReport, ComputesRatesFromTheMedianStep) {
  const Measured merged = merge_measured({report_of(1, {5, 2, 2}), report_of(10, {4, 3, 6})});

  const Experiment experiment = test::TinyExperiment{}.make();
  const std::int64_t length = experiment.settings.sequence_length;
  const double samples_of_rank = 3 * 2;
  EXPECT_DOUBLE_EQ(merged.samples_per_s, 2 * samples_of_rank / 5);
  EXPECT_DOUBLE_EQ(merged.tokens_per_s, 2 * samples_of_rank * static_cast<double>(length) / 5);
  EXPECT_DOUBLE_EQ(merged.flops_per_s_per_rank,
                   training_flops(experiment.settings.model, 6 * length, length) / 5);
}

TEST(RankReport, HasNoRatesIfTheClockStandsStill) {
  const Measured merged = merge_measured({report_of(0, {0, 0})});

  EXPECT_EQ(merged.samples_per_s, 0);
  EXPECT_EQ(merged.tokens_per_s, 0);
  EXPECT_EQ(merged.flops_per_s_per_rank, 0);
}

TEST(RankReport, KeepsTheWallTimeOfTheFirstRank) {
  RankReport first = report_of(1, {5, 2, 2});
  RankReport second = report_of(10, {4, 3, 6});
  first.own.warmup_time = 7;
  second.own.warmup_time = 8;

  const Measured merged = merge_measured({first, second});

  EXPECT_EQ(merged.warmup_time, 7);
  EXPECT_EQ(merged.measure_time, 5 + 2 + 2);
}

TEST(RankReport, KeepsTheLongestSetUp) {
  std::vector<RankReport> reports(3, report_of(1, {1}));
  reports[0].own.setup_time = 1;
  reports[1].own.setup_time = 3;
  reports[2].own.setup_time = 2;

  EXPECT_EQ(merge_measured(reports).setup_time, 3);
}

TEST(RankReport, KeepsTheWholePeakOfTheRankWithTheLargest) {
  std::vector<RankReport> reports(3, report_of(1, {1}));
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    PeakMemory& peak = reports[rank].own.peak_memory;
    peak.allocated = rank == 1 ? 900 : 800;
    peak.at_peak.at(MemoryCategory::parameters) = 100 * (rank + 1);
    peak.categories.at(MemoryCategory::gradients) = 1000 * (3 - rank);
  }

  EXPECT_EQ(merge_measured(reports).peak_memory, reports[1].own.peak_memory);
}

TEST(RankReport, AveragesTheLosses) {
  std::vector<RankReport> reports(2, report_of(1, {1}));
  reports[0].own.first_loss = 4;
  reports[1].own.first_loss = 5;
  reports[0].own.last_loss = 2;
  reports[1].own.last_loss = 1;

  const Measured merged = merge_measured(reports);

  EXPECT_EQ(merged.first_loss, 4.5);
  EXPECT_EQ(merged.last_loss, 1.5);
}

TEST(RankReport, KeepsTheLedgerOfTheFirstRank) {
  std::vector<RankReport> reports(2, report_of(1, {1}));
  reports[0].own.ledger = test::make_ledger();

  const Measured merged = merge_measured(reports);

  EXPECT_EQ(merged.ledger, reports[0].own.ledger);
}

TEST(RankReport, MergesWhatTheDevicesSaid) {
  std::vector<RankReport> reports(2, report_of(1, {1}));
  reports[0].own.core_use = {{2, 1, 0}};
  reports[1].own.core_use = {{1, 1, 0}};
  reports[0].own.device_use.emplace().power_w = 100;
  reports[1].own.device_use.emplace().power_w = 200;

  EXPECT_EQ(merge_measured(reports).device_use.value().power_w, 300);
  EXPECT_EQ(merge_measured(reports).core_use, (std::vector<CoreUse>{{2, 1, 0}, {1, 1, 0}}));
  reports[0].own.device_use.reset();
  EXPECT_EQ(merge_measured(reports).device_use.value().power_w, std::nullopt);
}

TEST(RankReport, TakesThePeaksOfTheSlowestDevice) {
  std::vector<RankReport> reports(2, report_of(1, {1}));
  reports[0].own.device_peaks = {5, 2};
  reports[1].own.device_peaks = {4, 3};

  EXPECT_EQ(merge_measured(reports).device_peaks, (DevicePeaks{4, 2}));
  reports[0].own.device_peaks.reset();
  EXPECT_EQ(merge_measured(reports).device_peaks, std::nullopt);
}

TEST(RankReport, NamesTheRankWhoseLossWasNotFinite) {
  std::vector<RankReport> reports(3, report_of(1, {1}));
  reports[1].not_finite = "rank 1: the loss became nan in step 3";

  const Outcome outcome = merge(reports);

  EXPECT_EQ(std::get<Failed>(outcome),
            (Failed{FailureKind::not_finite, "rank 1: the loss became nan in step 3"}));
}

TEST(RankReport, SurvivesItsText) {
  RankReport report = report_of(1.0 / 3, {0.1 + 0.2, 1e-9 / 3});
  report.not_finite = "the loss became \"nan\"";
  report.own.setup_time = 0.1;
  report.own.warmup_time = 0.7;
  report.own.last_loss = 10.82;
  report.own.peak_memory.allocated = 65'927'544'832;

  const RankReport copy = rank_report_from_text(to_text(report));

  EXPECT_EQ(copy.total, report.total);
  EXPECT_EQ(copy.forward, report.forward);
  EXPECT_EQ(copy.backward, report.backward);
  EXPECT_EQ(copy.optimizer, report.optimizer);
  EXPECT_EQ(copy.communication, report.communication);
  EXPECT_EQ(copy.not_finite, report.not_finite);
  EXPECT_EQ(copy.own.setup_time, report.own.setup_time);
  EXPECT_EQ(copy.own.warmup_time, report.own.warmup_time);
  EXPECT_EQ(copy.own.last_loss, report.own.last_loss);
  EXPECT_EQ(copy.own.peak_memory, report.own.peak_memory);
}

TEST(RankReport, RejectsTextThatIsNoReport) {
  for (const char* text : {"", "{", "[]", R"({"total": []})"}) {
    EXPECT_THROW(rank_report_from_text(text), std::invalid_argument) << text;
  }
}

TEST(RankReport, RejectsTheReportOfAnotherOutcome) {
  std::string text = to_text(report_of(1, {1}));
  const std::size_t status = text.find("\"measured\"");
  ASSERT_NE(status, std::string::npos);
  text.replace(status, 10, "\"skipped\"");

  EXPECT_THROW(rank_report_from_text(text), std::invalid_argument);
}

// A rank's steps of these times, real and padded tokens.
RankReport varying_report(const std::vector<StepWork>& steps) {
  RankReport report;
  for (const StepWork& work : steps) {
    StepReport step = step_of(work.time, 1);
    step.real_tokens = work.real_tokens;
    step.padded_tokens = work.padded_tokens;
    step.flops = 10 * work.real_tokens;
    report.add(step, 0, 0);
  }
  return report;
}

TEST(RankReport, RatesOfStepsThatVaryAreThoseOfAllTogether) {
  Experiment experiment = test::TinyExperiment{.ranks = 2}.make();
  experiment.settings.lengths = {.law = LengthLaw::uniform, .least = 2, .most = 9};
  const std::vector<RankReport> reports = {varying_report({{1, 10, 20}, {5, 30, 30}, {1, 5, 8}}),
                                           varying_report({{2, 10, 40}, {4, 10, 40}, {1, 5, 9}})};

  const auto merged =
      std::get<Measured>(merge_reports(reports, experiment, make_step_config(experiment)));

  ASSERT_TRUE(merged.varying.has_value());
  EXPECT_DOUBLE_EQ(merged.varying->mean_step_time, 8.0 / 3);  // 2, 5 and 1 s
  EXPECT_DOUBLE_EQ(merged.varying->p95_step_time, 5);
  EXPECT_DOUBLE_EQ(merged.varying->mean_real_tokens, 70.0 / 3);
  EXPECT_DOUBLE_EQ(merged.varying->mean_padded_tokens, 147.0 / 3);
  EXPECT_DOUBLE_EQ(merged.varying->padded_tokens_per_s, 147.0 / 8);
  EXPECT_DOUBLE_EQ(merged.varying->p95_tokens_per_s, 8);  // of 10, 8 and 10
  EXPECT_DOUBLE_EQ(merged.tokens_per_s, 70.0 / 8);
  EXPECT_DOUBLE_EQ(merged.samples_per_s, 2 * 3 / 8.0);
  EXPECT_DOUBLE_EQ(merged.flops_per_s_per_rank, 700.0 / 2 / 8);
  EXPECT_DOUBLE_EQ(typical_step_time(merged), 8.0 / 3);
}

}  // namespace
}  // namespace dstune::rank_report_test
