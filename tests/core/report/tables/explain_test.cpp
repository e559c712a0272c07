#include "core/report/tables/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"
#include "tests/support/make_ledger.hpp"

namespace dstune::explain_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

Measured with_ledger(double samples_per_s) {
  Measured measured = make_measured(samples_per_s);
  measured.ledger = test::make_ledger();
  measured.peak_memory.phase = StepPhase::update;
  measured.peak_memory.categories.at(MemoryCategory::optimizer) = 1U << 30U;
  return measured;
}

TEST(Explain, HasASectionForEverySortOfEntry) {
  const std::string text = explain(make_experiment(3, 4), with_ledger(8));

  EXPECT_THAT(text, AllOf(HasSubstr("z3_gas1_tmbspg4: "), HasSubstr("| forward"),
                          HasSubstr("| gradients       | reduce_scatter | bf16 | reduction |"),
                          HasSubstr("| master_gradient |"), HasSubstr("| timer "),
                          HasSubstr("| device_to_host |"), HasSubstr("peak live elements"),
                          HasSubstr("GiB in update")));
}

TEST(Explain, SaysWhatACachingAllocatorReserved) {
  Measured measured = with_ledger(8);
  measured.peak_memory.reserved = Bytes{7} << 30U;

  const std::string text = explain(make_experiment(3, 4), measured);

  EXPECT_THAT(text, HasSubstr("3.00 GiB allocated in update, 7.00 GiB reserved"));
  EXPECT_THAT(text, HasSubstr("peak 3.00 GiB allocated, 7.00 GiB reserved"));
}

TEST(Explain, SaysWhatWasActiveAndOfAPlanWhatMayBeInFlight) {
  Measured measured = with_ledger(8);
  measured.peak_memory.active = Bytes{4} << 30U;

  EXPECT_THAT(explain(make_experiment(3, 4), measured),
              AllOf(HasSubstr("peak 3.00 GiB allocated, 4.00 GiB active"),
                    HasSubstr("peak 3.00 GiB allocated in update, 4.00 GiB active")));

  measured.step_time.median = 0;  // as of a dry run
  EXPECT_THAT(explain(make_experiment(3, 4), measured),
              HasSubstr("peak 3.00 GiB allocated, at most 1.00 GiB more in flight"));
}

TEST(Explain, ShowsTheHostCodeOfDeepSpeedAndItsSum) {
  const std::string text = explain(make_experiment(3, 4), with_ledger(8));

  EXPECT_THAT(text,
              AllOf(HasSubstr("| host code of the training | times |   ms | compute idle (ms) |"),
                    HasSubstr("| gradient_hook             |     1 | 0.06 |              0.04 |"),
                    HasSubstr("| all                       |       | 0.06 |              0.04 |")));
}

TEST(Explain, ShowsWhatIsWaitedForProducts) {
  Measured measured = with_ledger(8);
  EXPECT_THAT(explain(make_experiment(3, 4), measured), Not(HasSubstr("torch is slower")));
  measured.ledger.add_library_wait(0.25);

  EXPECT_THAT(explain(make_experiment(3, 4), measured),
              HasSubstr("| beside it: arithmetic in which torch is slower |       | 250.00 |"));
}

TEST(Explain, ShowsWhatTheDevicesSaid) {
  Measured measured = with_ledger(8);
  EXPECT_THAT(explain(make_experiment(3, 4), measured), Not(HasSubstr("| device ")));
  measured.device_use = {.sm_clock_mhz = 1410,
                         .max_sm_clock_mhz = 1980,
                         .temperature_c = 83,
                         .power_w = 612,
                         .energy_per_step_j = 1224,
                         .throttle_reasons = {"heat", "power cap"},
                         .other_processes = 2};

  EXPECT_THAT(explain(make_experiment(3, 4), measured),
              AllOf(HasSubstr("| SM clock         |        1410 MHz |"), HasSubstr("1980 MHz"),
                    HasSubstr("| temperature      |            83 C |"), HasSubstr(" 612 W |"),
                    HasSubstr(" 1224 J |"), HasSubstr("| held back by     | heat, power cap |"),
                    HasSubstr("| other processes  |               2 |")));
}

TEST(Explain, HoldsSpeedAgainstTheMeasuredPeaks) {
  Measured measured = with_ledger(8);
  EXPECT_THAT(explain(make_experiment(3, 4), measured), Not(HasSubstr("speed of a copy")));
  measured.flops_per_s_per_rank = 250e12;
  measured.device_peaks = {612e12, 1e6};

  EXPECT_THAT(explain(make_experiment(3, 4), measured),
              AllOf(HasSubstr(", 41 % of the measured GEMM peak (612.0 TFLOP/s)\n"),
                    HasSubstr("ms at the speed of a copy |")));
}

TEST(Explain, SaysNothingOfADeviceThatSaysNothing) {
  Measured measured = with_ledger(8);
  measured.device_use.emplace();

  EXPECT_THAT(explain(make_experiment(3, 4), measured), Not(HasSubstr("| device ")));
}

TEST(Explain, ADryRunHasNoTimes) {
  Measured dry = with_ledger(8);
  dry.step_time = {};

  const std::string text = explain(make_experiment(3, 4), dry);

  EXPECT_THAT(text, AllOf(HasSubstr("computed without running"), Not(HasSubstr("(ms)")),
                          Not(HasSubstr("| forward")), HasSubstr("reduce_scatter")));
}

TEST(Explain, WithoutNumbersThereIsAReason) {
  const std::string text = explain(make_experiment(3, 4), Skipped{"no offload"});

  EXPECT_EQ(text, "z3_gas1_tmbspg4: skipped: no offload\n");
}

TEST(ExplainDifferences, SettingsAndNumbersStandSideBySide) {
  Record slow = make_record(make_experiment(3, 4), with_ledger(8));
  const Record best = make_record(make_experiment(1, 4), with_ledger(10));
  std::get<Measured>(slow.outcome).ledger.add_pass(MemoryPass::update, 1U << 20U, 0);

  const std::string text = explain_differences(slow, best, "the best");

  EXPECT_THAT(text, AllOf(HasSubstr("Against the best, z1_gas1_tmbspg4: "),
                          HasSubstr("| /zero_optimization/stage | 3               | 1        |"),
                          HasSubstr("| whole step (ms)"), HasSubstr("| host overhead (ms)"),
                          HasSubstr("+1.00 MiB")));
}

TEST(ExplainDifferences, HaveWhatIsWaitedForProductsWhereOneOfThemWaits) {
  Record slow = make_record(make_experiment(3, 4), with_ledger(8));
  const Record best = make_record(make_experiment(1, 4), with_ledger(10));
  EXPECT_THAT(explain_differences(slow, best, "the best"), Not(HasSubstr("torch is slower")));

  std::get<Measured>(slow.outcome).ledger.add_library_wait(0.25);

  EXPECT_THAT(
      explain_differences(slow, best, "the best"),
      HasSubstr("| arithmetic in which torch is slower (ms) |          250.00 |       0.00 |"));
}

TEST(ExplainDifferences, OfWhatHasNoNumbersAreSettingsOnly) {
  const Record lost = make_record(make_experiment(3, 4), Skipped{"no offload"});
  const Record best = make_record(make_experiment(1, 4), with_ledger(10));

  const std::string text = explain_differences(lost, best, "the best");

  EXPECT_THAT(text, AllOf(HasSubstr("/zero_optimization/stage"), Not(HasSubstr("whole step"))));
}

}  // namespace
}  // namespace dstune::explain_test
