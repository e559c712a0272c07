#include "core/experiment/outcome/outcome.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "tests/support/make_ledger.hpp"

namespace dstune::outcome_test {
namespace {

using namespace literals;

// Values whose shortest decimal text has 16 or 17 digits: a rounding parser would change them.
Measured awkward() {
  Measured measured;
  measured.steps = 7;
  measured.step_time = {0.1 + 0.2, 1.0 / 3, 2.0 / 3, 0.8};
  measured.forward_time = 1e-9 / 3;
  measured.backward_time = std::nextafter(0.1, 1.0);
  measured.optimizer_time = 5e-324;
  measured.communication_time = 0;
  measured.samples_per_s = 9.7;
  measured.tokens_per_s = 1241.6 / 7;
  measured.flops_per_s_per_rank = 171.3e9 / 3;
  measured.first_loss = 10.82;
  measured.last_loss = 10.8199999999999;
  measured.peak_memory.allocated = 65927544832;
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    measured.peak_memory.at_peak.bytes[i] = 100 + i;
    measured.peak_memory.categories.bytes[i] = 1'000'000'000'000 + i;
  }
  measured.peak_memory.active = 65937544832;
  measured.peak_memory.reserved = 65938653184;
  measured.peak_host_memory = {
      {1'000'000'000'001, 2'000'000'000'003, 5}, 3'000'000'000'007, 7, 4'000'000'000'001};
  measured.peak_memory.phase = StepPhase::update;
  measured.peak_memory.phases[3] = StepPhase::reduction;
  measured.ledger = test::make_ledger();
  measured.setup_time = 0.7;
  measured.warmup_time = 0.123456789012345678;
  measured.measure_time = 3 * 0.1;
  measured.compute_times = {0.1, 0.3};
  measured.core_use = {{1.5, 1.25, 4096, "integers", 12'097}, {0.1, 0.3, 1.0 / 7}};
  measured.device_use.emplace().power_w = 612.0 / 7;
  measured.network = "AWS Libfabric";
  measured.device_peaks = {1e15 / 3, 1e12 / 7};
  measured.machine_rates = {.overlaps = true, .flops_per_s = 1e15 / 3, .launch = 1e-6 / 7};
  measured.step_time.independent = 10.0 / 3;
  measured.slow_steps = SlowPart{2, 1.0 / 7};
  measured.varying = {1.0 / 3, 2.0 / 3, 1e4 / 7, 1e5 / 7, 1e6 / 3, 1e6 / 7};
  return measured;
}

Outcome through_text(const Outcome& outcome) {
  return outcome_from_json(parse_json(to_json_text(to_json(outcome), 0)).as_object());
}

void expect_equal(const Measured& actual, const Measured& expected) {
  EXPECT_EQ(actual.steps, expected.steps);
  EXPECT_EQ(actual.step_time, expected.step_time);
  EXPECT_EQ(actual.forward_time, expected.forward_time);
  EXPECT_EQ(actual.backward_time, expected.backward_time);
  EXPECT_EQ(actual.optimizer_time, expected.optimizer_time);
  EXPECT_EQ(actual.communication_time, expected.communication_time);
  EXPECT_EQ(actual.samples_per_s, expected.samples_per_s);
  EXPECT_EQ(actual.tokens_per_s, expected.tokens_per_s);
  EXPECT_EQ(actual.flops_per_s_per_rank, expected.flops_per_s_per_rank);
  EXPECT_EQ(actual.first_loss, expected.first_loss);
  EXPECT_EQ(actual.last_loss, expected.last_loss);
  EXPECT_EQ(actual.peak_memory, expected.peak_memory);
  EXPECT_EQ(actual.ledger, expected.ledger);
  EXPECT_EQ(actual.setup_time, expected.setup_time);
  EXPECT_EQ(actual.warmup_time, expected.warmup_time);
  EXPECT_EQ(actual.measure_time, expected.measure_time);
  EXPECT_EQ(actual.compute_times, expected.compute_times);
  EXPECT_EQ(actual.core_use, expected.core_use);
  EXPECT_EQ(actual.device_use, expected.device_use);
  EXPECT_EQ(actual.network, expected.network);
  EXPECT_EQ(actual.device_peaks, expected.device_peaks);
  EXPECT_EQ(actual.machine_rates, expected.machine_rates);
  EXPECT_EQ(actual.varying, expected.varying);
  EXPECT_EQ(actual.slow_steps, expected.slow_steps);
}

TEST(OutcomeJson, MeasuredReadsBackToTheSameBits) {
  const Outcome back = through_text(awkward());

  ASSERT_TRUE(std::holds_alternative<Measured>(back));
  expect_equal(std::get<Measured>(back), awkward());
}

TEST(OutcomeJson, MeasuredWithoutAWordOfTheDevicesReadsBack) {
  Measured silent = awkward();
  silent.device_use.reset();
  silent.device_peaks.reset();
  silent.machine_rates.reset();

  EXPECT_FALSE(to_json(silent).contains("device_use"));
  EXPECT_FALSE(to_json(silent).contains("device_peaks"));
  EXPECT_FALSE(to_json(silent).contains("machine_rates"));
  EXPECT_EQ(std::get<Measured>(through_text(silent)).device_peaks, std::nullopt);
  EXPECT_EQ(std::get<Measured>(through_text(silent)).device_use, std::nullopt);
}

TEST(OutcomeJson, ACoreUseOfAnEarlierReleaseHasNoPageFaults) {
  json::object object = to_json(awkward());
  for (json::value& use : object.at("core_use").as_array()) use.as_object().erase("page_faults");

  const Outcome back = outcome_from_json(object);

  EXPECT_EQ(std::get<Measured>(back).core_use.at(0).page_faults, 0);
  EXPECT_EQ(std::get<Measured>(back).core_use.at(0).wanted, awkward().core_use.at(0).wanted);
}

TEST(OutcomeJson, ANetworkThatIsNotKnownIsNotWritten) {
  Measured measured = awkward();
  measured.network.clear();

  EXPECT_FALSE(to_json(measured).contains("network"));
  EXPECT_EQ(std::get<Measured>(through_text(measured)).network, "");
}

TEST(OutcomeJson, NotANumberStaysNotANumber) {
  Measured measured = awkward();
  measured.last_loss = std::nan("");

  const Outcome back = through_text(measured);

  EXPECT_TRUE(std::isnan(std::get<Measured>(back).last_loss));
}

TEST(OutcomeJson, OutOfMemoryReadsBackForEveryCategory) {
  for (std::size_t i = 0; i < kMemoryCategories; ++i) {
    const OutOfMemory fault{5, static_cast<MemoryCategory>(i), 6_GiB, 11_GiB, 16_GiB, 12_GiB};

    EXPECT_EQ(std::get<OutOfMemory>(through_text(fault)), fault);
  }
}

TEST(OutcomeJson, WhatTheSystemRefusedReadsBack) {
  const OutOfMemory fault{5, {}, 6_GiB, 11_GiB, 16_GiB, 0, "ulimit -v has nothing left"};

  EXPECT_EQ(std::get<OutOfMemory>(through_text(fault)), fault);
}

TEST(OutcomeJson, TheTierThatWasShortReadsBackAndIsSaid) {
  for (const Tier tier : {Tier::pinned, Tier::pageable}) {
    const OutOfMemory fault{5, MemoryCategory::optimizer, 6_GiB, 11_GiB, 16_GiB, 0, "", tier};

    EXPECT_EQ(std::get<OutOfMemory>(through_text(fault)), fault);
    EXPECT_EQ(describe(fault), concat("out of the host's memory (", name_of(tier),
                                      ") on rank 5 (wanted 6.00 GiB more for optimizer, 11.00 GiB "
                                      "of 16.00 GiB allocated)"));
  }
}

TEST(OutOfMemoryOfAMachine, IsOneBelowTheLimit) {
  EXPECT_TRUE(is_machines({5, {}, 5_GiB, 11_GiB, 16_GiB}));
  EXPECT_FALSE(is_machines({5, {}, 6_GiB, 11_GiB, 16_GiB}));
  EXPECT_FALSE(is_machines({5, {}, 5_GiB, 1_GiB, 16_GiB, 12_GiB})) << "the segments have it";
  EXPECT_TRUE(is_machines({5, {}, 0, 16_GiB, 16_GiB})) << "earlier versions did not know the size";
  EXPECT_TRUE(is_machines({5, {}, 0, 1_GiB, 1_GiB, 0, "the out-of-memory killer"}));
  EXPECT_TRUE(is_machines({5, {}, 1_GiB, 0, 0, 0, "the drive is full", Tier::nvme}));
  EXPECT_FALSE(is_machines({5, {}, 1_GiB, 0, 0, 0, "ulimit -l", Tier::locked}));
}

TEST(OutcomeJson, FailedReadsBackForEveryKind) {
  for (const auto kind :
       {FailureKind::error, FailureKind::not_finite, FailureKind::timeout, FailureKind::worker_lost,
        FailureKind::quarantined, FailureKind::device_lost, FailureKind::wrong_sums}) {
    const Failed failed{kind, "says \"no\"\nin two lines"};

    EXPECT_EQ(std::get<Failed>(through_text(failed)), failed);
  }
}

TEST(OutcomeJson, SkippedReadsBack) {
  const Skipped skipped{"zero_optimization.offload_optimizer"};

  EXPECT_EQ(std::get<Skipped>(through_text(skipped)), skipped);
}

TEST(OutcomeJson, KeysCarryTheirUnits) {
  const json::object object = to_json(Outcome{OutOfMemory{5, MemoryCategory::buckets, 3, 2, 4}});

  EXPECT_EQ(to_json_text(object, 0),
            R"({"status":"out_of_memory","rank":5,"category":"buckets","requested_bytes":3,)"
            R"("in_use_bytes":2,"limit_bytes":4,"reserved_bytes":0})");
}

TEST(OutcomeJson, ReadsWhatEarlierVersionsWroteOfMemory) {
  json::object measured = to_json(Outcome{awkward()});
  measured.erase("peak_active_bytes");
  measured.erase("peak_reserved_bytes");
  json::object fault = to_json(Outcome{OutOfMemory{5, MemoryCategory::buckets, 3, 2, 4}});
  fault.erase("reserved_bytes");

  const PeakMemory peak = std::get<Measured>(outcome_from_json(measured)).peak_memory;
  EXPECT_EQ(peak.reserved, 0U);
  EXPECT_EQ(peak.active, peak.allocated);
  EXPECT_EQ(std::get<OutOfMemory>(outcome_from_json(fault)).limit, 4U);
}

TEST(OutcomeJson, RejectsWhatIsNoOutcome) {
  for (const char* text :
       {"{}", R"({"status":"lost"})", R"({"status":"measured"})", R"({"status":"skipped"})",
        R"({"status":"failed","kind":"rain","reason":""})", R"({"status":3})",
        R"({"status":"out_of_memory","rank":1,"category":"disk","requested_bytes":1,)"
        R"("in_use_bytes":1,"limit_bytes":1})"}) {
    EXPECT_THROW(outcome_from_json(parse_json(text).as_object()), std::invalid_argument) << text;
  }
}

TEST(DescribeOutcome, MeasuredShowsTimeNoiseSpeedAndMemory) {
  Measured measured;
  measured.steps = 6;
  measured.step_time = {0.4126, 0.4, 0.42, 0.8};
  measured.flops_per_s_per_rank = 171.3e9;
  measured.samples_per_s = 9.7;
  measured.peak_memory.allocated = 65927544832;

  const std::string line = describe(measured);

  EXPECT_EQ(
      line,
      "412.6 ms +-1.1% (95 %, 6 steps), 171.3 GFLOP/s per rank, 9.7 samples/s, peak 61.40 GiB");
}

// Student's t of 3 degrees of freedom is 3.182.
TEST(RelativeInterval, GrowsWithTheCorrelationOfSteps) {
  Measured measured;
  measured.steps = 4;
  measured.step_time.noise_percent = 2;

  const double of_earlier_versions = *relative_interval(measured);
  measured.step_time.independent = 4;
  const double independent = *relative_interval(measured);
  measured.step_time.independent = 2;
  const double correlated = *relative_interval(measured);
  measured.steps = 1;

  EXPECT_NEAR(independent, 3.182 * 1.2533 * 0.02 / 2, 1e-5);
  EXPECT_EQ(of_earlier_versions, independent) << "they did not say, and their steps count as such";
  EXPECT_GT(correlated, 2 * independent);
  EXPECT_FALSE(relative_interval(measured));
  EXPECT_EQ(describe(measured).find("+-"), std::string::npos);
}

TEST(RelativeError, OfSeveralRunsIsTheRootMeanSquare) {
  Measured quiet;
  quiet.steps = 4;
  quiet.step_time.noise_percent = 2;
  Measured noisy = quiet;
  noisy.step_time.noise_percent = 14;

  EXPECT_DOUBLE_EQ(relative_error({&quiet, &noisy}), 1.2533 * 0.1 / 2);
}

TEST(DescribeOutcome, StepsThatVaryHaveMeanAndP95) {
  Measured measured;
  measured.steps = 16;
  measured.step_time = {0.4, 0.1, 0.9, 40};
  measured.varying = {.mean_step_time = 0.5, .p95_step_time = 0.8};

  EXPECT_EQ(describe(measured).substr(0, 33), "500.0 ms on average, P95 800.0 ms");
  EXPECT_DOUBLE_EQ(typical_step_time(measured), 0.5);
  EXPECT_DOUBLE_EQ(relative_error(measured), 0.1);  // the mean's: 0.4 / sqrt(16)
}

TEST(ShareOfPeak, IsTheSpeedOverTheMeasuredPeak) {
  Measured measured;
  measured.flops_per_s_per_rank = 250e12;
  EXPECT_EQ(share_of_peak(measured), "");
  measured.device_peaks = {612e12, 3e12};

  EXPECT_EQ(share_of_peak(measured), "41 % of the measured GEMM peak (612.0 TFLOP/s)");
  measured.flops_per_s_per_rank = 0;  // of a dry run
  EXPECT_EQ(share_of_peak(measured), "");
}

TEST(DescribeOutcome, OutOfMemoryShowsTheNumbers) {
  const OutOfMemory fault{5, MemoryCategory::activations, 6_GiB, 11_GiB, 16_GiB};

  const std::string line = describe(fault);

  EXPECT_EQ(line,
            "out of memory on rank 5 (wanted 6.00 GiB more for activations, 11.00 GiB of 16.00 GiB "
            "allocated)");
}

TEST(DescribeOutcome, OutOfMemoryShowsWhatTheSystemRefused) {
  OutOfMemory fault{5, MemoryCategory::activations, 6_MiB, 11_MiB, 16_GiB, 0, "ulimit -v is full"};
  EXPECT_EQ(
      describe(fault),
      "out of memory on rank 5 (the system refused 6.00 MiB more for activations: ulimit -v is "
      "full; 11.00 MiB of 16.00 GiB allocated)");

  fault.requested = 0;
  EXPECT_EQ(describe(fault), "out of memory on rank 5 (ulimit -v is full)");
}

TEST(DescribeOutcome, ReasonsStayOnOneLine) {
  EXPECT_EQ(describe(Failed{FailureKind::error, "first\nsecond\n"}), "failed: first second");
  EXPECT_EQ(describe(Skipped{"no offload"}), "skipped: no offload");
}

}  // namespace
}  // namespace dstune::outcome_test
