#include "core/report/tables/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::summary_test {
namespace {

using testing::HasSubstr;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

TEST(SummaryText, HasDeepSpeedsTableAndClosingLine) {
  const std::vector<Record> records = {
      make_record(make_experiment(0, 1), make_measured(5)),
      make_record(make_experiment(0, 2), make_measured(8)),
      make_record(make_experiment(2, 4), make_measured(10)),
      make_record(make_experiment(3, 4), Failed{FailureKind::timeout, "600 s"})};

  const std::string text =
      summary_text(records, Metric::throughput, &records[2], "results/z2_gas1_tmbspg4", 205.25);

  EXPECT_EQ(text,
            "| tuning_space | num_experiments | best_metric_val | best_exp_name   |\n"
            "| ------------ | --------------: | --------------: | --------------- |\n"
            "| z0           |               2 |               8 | z0_gas1_tmbspg2 |\n"
            "| z2           |               1 |              10 | z2_gas1_tmbspg4 |\n"
            "| z3           |               1 |                 |                 |\n"
            "| global       |               4 |              10 | z2_gas1_tmbspg4 |\n"
            "\n"
            "best_metric_val is throughput in samples/s.\n"
            "z2_gas1_tmbspg4 is the optimal setup after tuning (ZeRO stage 2, micro-batch size 4, "
            "gradient accumulation steps 1). The exp result is at results/z2_gas1_tmbspg4.\n"
            "It takes 400.0 ms per step +- 2.5 % (95 %, the steps of one run), 10.00 samples/s, "
            "peak 3.00 GiB.\n"
            "Tuning completed in 0:03:25.250000. Total number of experiments: 4.\n");
}

TEST(SummaryText, SaysBesideTheOptimumThatAPresetChoseIt) {
  std::vector<Record> records = {make_record(make_experiment(0, 1), make_measured(9))};
  records[0].experiment.settings.host_overhead = host_overhead_preset(kGlooOverhead).value();

  EXPECT_THAT(summary_text(records, Metric::throughput, records.data(), "r", 1),
              HasSubstr("The exp result is at r. It was chosen by preset cpu-gloo: its picks were "
                        "10 and 18 % slower"));
}

TEST(SummaryText, TheOptimumStandsInTheRowOfItsStageToo) {
  const std::vector<Record> records = {make_record(make_experiment(0, 1), make_measured(9)),
                                       make_record(make_experiment(0, 2), make_measured(10))};

  const std::string text = summary_text(records, Metric::throughput, &records[0], "r", 1);

  EXPECT_THAT(text, HasSubstr("| z0           |               2 |               9 | "
                              "z0_gas1_tmbspg1 |"));
}

TEST(SummaryText, AnnouncesTheMeanOfTheRepetitionsNotTheNumberThatWasChosen) {
  std::vector<Record> records = {make_record(make_experiment(0, 1), make_measured(9)),
                                 make_record(make_experiment(0, 2), make_measured(10))};
  for (const double speed : {8.0, 8.1}) {
    Record again = records[1];
    again.experiment.name += std::to_string(speed);
    again.experiment.repetition = 1;
    again.outcome = make_measured(speed);
    records.push_back(again);
  }

  const std::string text = summary_text(records, Metric::throughput, &records[1], "r", 1);

  EXPECT_THAT(text, HasSubstr("| z0           |               4 |         8.04984 | "
                              "z0_gas1_tmbspg2 |"));
  EXPECT_THAT(text, HasSubstr("It takes 496.9 ms per step +- "));
  EXPECT_THAT(text, HasSubstr("% (95 %, 2 runs), 8.05 samples/s, peak 3.00 GiB: the mean of its "
                              "repetitions, excluding the run by which it was chosen.\n"));
}

TEST(SummaryText, OfEquallyFastOnesOfAStageItNamesTheOneThatNeedsLessMemoryWhateverTheNames) {
  Measured smaller = make_measured(8);
  smaller.peak_memory.allocated /= 2;
  const std::vector<Record> records = {make_record(make_experiment(0, 1), make_measured(8)),
                                       make_record(make_experiment(0, 2), smaller)};
  const std::vector<Record> backwards = {records[1], records[0]};

  for (const auto& each : {records, backwards}) {
    EXPECT_THAT(summary_text(each, Metric::throughput, nullptr, "", 1),
                HasSubstr("|               8 | z0_gas1_tmbspg2 |"));
  }
}

TEST(SummaryText, LatencyIsMinimised) {
  const std::vector<Record> records = {make_record(make_experiment(0, 1), make_measured(8)),
                                       make_record(make_experiment(0, 2), make_measured(5))};

  const std::string text = summary_text(records, Metric::latency, &records[0], "r", 1);

  EXPECT_THAT(text, HasSubstr("| z0           |               2 |          500000 | "
                              "z0_gas1_tmbspg1 |"));
}

TEST(SummaryText, HasWhatTheOptimumMustBeReadWith) {
  const std::string text = summary_text({}, Metric::throughput, nullptr, "", 0, false,
                                        {"tuned without /a", "tuned in bf16"});

  EXPECT_THAT(text, HasSubstr("\nNote: tuned without /a.\nNote: tuned in bf16.\n"));
}

TEST(SummaryText, SaysSoIfNothingRan) {
  const std::string text = summary_text({}, Metric::throughput, nullptr, "", 0);

  EXPECT_THAT(text, HasSubstr("No optimal setup is found."));
  EXPECT_THAT(text, HasSubstr("Total number of experiments: 0."));
}

TEST(TuningRecords, LeaveOutTheProfileRun) {
  auto profile = make_record(make_experiment(3, 1), make_measured(5));
  profile.experiment.name = kProfileName;

  const auto kept = tuning_records({profile, make_record(make_experiment(3, 2), make_measured(5))});

  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].experiment.name, "z3_gas1_tmbspg2");
}

TEST(TuningRecords, LeaveOutTheMeasuringOfTheMachine) {
  auto machine = make_record(make_experiment(3, 1), make_measured(5));
  machine.experiment.measures_machine = true;

  EXPECT_TRUE(tuning_records({machine}).empty());
}

TEST(TuningRecords, LeaveOutTheReferencesBetweenExperiments) {
  auto reference = make_record(make_experiment(3, 1), make_measured(5));
  reference.experiment.is_reference = true;

  EXPECT_TRUE(tuning_records({reference}).empty());
}

TEST(DurationText, IsPythonsTimedelta) {
  EXPECT_EQ(duration_text(0), "0:00:00");
  EXPECT_EQ(duration_text(59.9999999), "0:01:00");
  EXPECT_EQ(duration_text(3661.5), "1:01:01.500000");
  EXPECT_EQ(duration_text(86400), "1 day, 0:00:00");
  EXPECT_EQ(duration_text(2 * 86400 + 1), "2 days, 0:00:01");
}

TEST(SummaryText, HasMeanAndP95WhereLengthsVary) {
  Measured measured = make_measured(8);
  measured.steps = 12;
  measured.tokens_per_s = 200;
  measured.varying = {0.5, 0.75, 100, 160, 320, 150};
  Record record = make_record(make_experiment(0, 1), measured);
  record.experiment.settings.lengths = {.law = LengthLaw::uniform, .least = 2, .most = 90};

  const std::string text = summary_text({record}, Metric::tokens, &record, "r", 1);

  EXPECT_THAT(text, HasSubstr("best_metric_val is tokens_per_s without padding."));
  EXPECT_THAT(text, HasSubstr("Lengths: uniform, 2 to 90, padded to the longest.\n"
                              "Of 12 steps the mean takes 500.0 ms, P95 750.0 ms; mean throughput "
                              "200.0 tokens/s without and 320.0 with padding (37.5 % of what is "
                              "computed), 95 % of the steps at least 150.0.\n"));
}

TEST(SummaryText, NamesTheLengthThatWasChosen) {
  Record record = make_record(make_experiment(0, 1), make_measured(8));
  record.experiment.ds_config.set("dstune", {{"sequence_length", 512}});
  record.experiment.settings.sequence_length = 512;

  EXPECT_THAT(summary_text({record}, Metric::tokens, &record, "r", 1),
              HasSubstr("gradient accumulation steps 1, sequence length 512)."));
}

TEST(SummaryText, NamesNoLengthWhereCheckpointingAloneWasChosen) {
  Record record = make_record(make_experiment(0, 1), make_measured(8));
  record.experiment.ds_config.set("dstune", {{"activation_checkpointing", true}});

  EXPECT_THAT(summary_text({record}, Metric::throughput, &record, "r", 1),
              HasSubstr("steps 1, activation checkpointing: every layer). The exp result"));
}

}  // namespace
}  // namespace dstune::summary_test
