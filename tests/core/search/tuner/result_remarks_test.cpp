#include "core/search/tuner/result_remarks.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::make_experiment;

constexpr int kCollectives = 10;

/// One sample per step of `seconds`, `host_seconds` of them in ten collectives.
Measured measured(Seconds seconds, Seconds host_seconds) {
  Measured measured = testing_support::make_measured(1 / seconds);
  measured.step_time = {seconds, seconds, seconds, 1};
  for (int i = 0; i < kCollectives; ++i) {
    measured.ledger.add_host(HostEvent::collective, host_seconds / kCollectives);
  }
  return measured;
}

Record record(int stage, Outcome outcome, std::string_view preset = kGlooOverhead,
              std::int64_t micro_batch = 1) {
  Experiment experiment = make_experiment(stage, micro_batch);
  experiment.settings.host_overhead = host_overhead_preset(preset).value();
  return testing_support::make_record(experiment, std::move(outcome));
}

std::string spread(const std::vector<Record>& records, Metric metric = Metric::throughput) {
  return spread_remark(records, metric, records.front());
}

// With half of the host time both take 0.8 s less half of their own: 0.75 and 0.70.
TEST(SpreadRemark, NamesTheStageThatWinsWithHalfOfTheHostTime) {
  const std::vector<Record> records = {record(1, measured(0.8, 0.1)),
                                       record(2, measured(0.9, 0.4))};

  EXPECT_EQ(spread(records),
            "z1 before z2 is within the preset's spread: calibrate (docs/host-overhead.md)");
  EXPECT_EQ(spread(records, Metric::latency), spread(records));
  EXPECT_EQ(spread(records, Metric::flops), spread(records));
}

TEST(ResultRemarks, WarnOfAnOptimumThatIsKnownToBeWrong) {
  Record best = record(3, measured(0.8, 0.1));
  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Not(testing::Contains(HasSubstr("fast and wrong"))));
  best.experiment.ds_config["zero_optimization"].as_object()["zero_hpz_partition_size"] = 2;

  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Contains(HasSubstr("z3_gas1_tmbspg1 may be fast and wrong: stage 3 with "
                                          "zero_hpz_partition_size")));
}

TEST(CheckpointingRemark, SaysWhatTheTrainingProgramHasToDo) {
  const Record plain = record(1, measured(0.9, 0.1));
  Record with = plain;
  with.experiment.ds_config["dstune"] = json::object{{"activation_checkpointing", true}};

  EXPECT_EQ(checkpointing_remark({plain}, plain), "");
  EXPECT_THAT(checkpointing_remark({plain, with}, with),
              HasSubstr("model.gradient_checkpointing_enable({'use_reentrant': False})"));
  EXPECT_THAT(checkpointing_remark({plain, with}, plain), HasSubstr("must not switch it on"));
}

TEST(PeakRemark, HoldsTheWinnerAgainstThePeakWhereThereIsOne) {
  Measured winner = measured(0.8, 0.1);
  winner.flops_per_s_per_rank = 250e12;
  EXPECT_EQ(peak_remark({record(1, winner)}, record(1, winner)), "");
  winner.device_peaks = {612e12, 3e12};

  EXPECT_THAT(result_remarks({record(1, winner)}, Metric::flops, record(1, winner)),
              testing::Contains("z1_gas1_tmbspg1 runs at 41 % of the measured GEMM peak (612.0 "
                                "TFLOP/s)"));
}

// 0.8 + 0.4 against 0.9 + 0.1.
TEST(SpreadRemark, NamesTheStageThatWinsWithTwiceTheHostTime) {
  EXPECT_THAT(spread({record(3, measured(0.8, 0.4)), record(0, measured(0.9, 0.1))}),
              HasSubstr("z3 before z0 is "));
}

TEST(SpreadRemark, IsSilentWhereTheOrderStays) {
  EXPECT_EQ(spread({record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.1))}), "");
  EXPECT_EQ(spread({record(1, measured(0.8, 0.1)), record(2, OutOfMemory{})}), "");
}

TEST(SpreadRemark, NamesEveryOrderOnce) {
  EXPECT_THAT(
      spread({record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.4)),
              record(2, measured(0.9, 0.4), kGlooOverhead, 4), record(3, measured(0.9, 0.5))}),
      HasSubstr("z1 before z2, z1 before z3 are "));
}

TEST(SpreadRemark, NamesTheExperimentsOfOneStage) {
  EXPECT_THAT(
      spread({record(1, measured(0.8, 0.1)), record(1, measured(0.9, 0.4), kGlooOverhead, 4)}),
      HasSubstr("z1_gas1_tmbspg1 before z1_gas1_tmbspg4 is "));
}

TEST(SpreadRemark, IsOfPresetsAlone) {
  auto records = std::vector{record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.4))};
  for (auto& each : records) each.experiment.settings.host_overhead.seconds[0] = 1e-3;

  EXPECT_EQ(spread(records), "");
  EXPECT_EQ(
      spread({record(1, measured(0.8, 0), kNoOverhead), record(2, measured(0.9, 0), kNoOverhead)}),
      "");
}

// z1 won by being the smaller stage: z2's 0.5 % are noise, and with half of the host time still.
TEST(SpreadRemark, DoesNotTakeNoiseForThePreset) {
  EXPECT_EQ(spread({record(1, measured(0.804, 0.1)), record(2, measured(0.8, 0.1))}), "");
  EXPECT_THAT(spread({record(1, measured(0.804, 0.1)), record(2, measured(0.8, 0.2))}),
              HasSubstr("z1 before z2 is "));
}

TEST(SpreadRemark, LooksAtTheRepetitionsThatDecided) {
  auto alone = record(2, measured(0.9, 0.1));
  alone.experiment.name += "_alone";
  alone.experiment.repetition = 1;
  auto winner_alone = record(1, measured(0.8, 0.1));
  winner_alone.experiment.name += "_alone";
  winner_alone.experiment.repetition = 1;
  const std::vector<Record> disturbed = {record(1, measured(0.8, 0.1)),
                                         record(2, measured(0.9, 0.4)), alone, winner_alone};

  EXPECT_EQ(spread(disturbed), "");
}

// z2's gain of 5 % is 0.5 % with half of the host time: then z1 stays, being the smaller stage.
TEST(SpreadRemark, NamesASmallerStageThatWouldStay) {
  EXPECT_THAT(spread({record(2, measured(0.95, 0.1)), record(1, measured(1.0, 0.191))}),
              HasSubstr("z2 before z1 is "));
}

// Beside others the larger micro-batch looked better than z1; the repetition is of the other one.
TEST(SpreadRemark, LeavesOutWhatWasNotRepeated) {
  std::vector<Record> records = {record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.1)),
                                 record(2, measured(0.7, 0.1), kGlooOverhead, 4)};
  for (std::size_t i = 0; i < 2; ++i) {
    records.push_back(records[i]);
    records.back().experiment.name += "_alone";
    records.back().experiment.repetition = 1;
  }

  EXPECT_EQ(spread(records), "");
}

TEST(ArithmeticRemark, IsOfSixteenBitsOnTheCpu) {
  auto bf16 = record(1, measured(1, 0));
  bf16.experiment.ds_config["bf16"] = {{"enabled", true}};
  auto simulated = bf16;
  simulated.experiment.settings.backend = "sim";

  EXPECT_THAT(arithmetic_remark({record(1, measured(1, 0)), bf16}), HasSubstr("computes in fp32"));
  EXPECT_EQ(arithmetic_remark({record(1, measured(1, 0))}), "");
  EXPECT_EQ(arithmetic_remark({simulated}), "");
  bf16.outcome = OutOfMemory{};
  EXPECT_EQ(arithmetic_remark({bf16}), "");
}

Record on_device(std::optional<DeviceUse> use) {
  Measured result = measured(1, 0);
  result.device_use = std::move(use);
  return record(1, result);
}

TEST(ThrottleRemark, HasTheNumbersOfTheSlowestClock) {
  const auto throttled = [](double clock, std::string reason) {
    return on_device(DeviceUse{.sm_clock_mhz = clock,
                               .max_sm_clock_mhz = 1980,
                               .power_w = 612,
                               .throttle_reasons = {std::move(reason)}});
  };

  EXPECT_EQ(throttle_remark({on_device(std::nullopt), on_device(DeviceUse{}), record(1, Skipped{}),
                             throttled(1800, "heat"), throttled(1410, "power cap")}),
            "the GPU was held back in 2 of 4 experiments (most in z1_gas1_tmbspg1, power cap: SM "
            "clock 1410 of 1980 MHz (71 %), 612 W): their times are not its best");
  EXPECT_EQ(throttle_remark({on_device(std::nullopt), on_device(DeviceUse{})}), "");
}

TEST(SharingRemark, CountsTheMostOtherProcesses) {
  EXPECT_EQ(sharing_remark({on_device(DeviceUse{.other_processes = 1}), on_device(DeviceUse{}),
                            on_device(DeviceUse{.other_processes = 2})}),
            "2 other processes used the GPU in 2 of 3 experiments: their times are not its best");
  EXPECT_THAT(sharing_remark({on_device(DeviceUse{.other_processes = 1})}),
              HasSubstr("1 other process used the GPU in 1 of 1 "));
  EXPECT_EQ(sharing_remark({on_device(DeviceUse{}), on_device(std::nullopt)}), "");
}

TEST(ResultRemarks, SayWhatHeldTheGpuBack) {
  const std::vector<Record> records = {
      on_device(DeviceUse{.throttle_reasons = {"heat"}, .other_processes = 1})};

  EXPECT_THAT(result_remarks(records, Metric::throughput, std::nullopt),
              testing::IsSupersetOf({HasSubstr("held back"), HasSubstr("1 other process")}));
}

TEST(ResultRemarks, BeginWithTheHostOverheadInForce) {
  const auto of = [](std::string_view preset) {
    const std::vector<Record> records = {record(1, measured(1, 0), preset)};
    return result_remarks(records, Metric::throughput, records.front());
  };

  EXPECT_THAT(of(kGlooOverhead),
              ElementsAre("host overhead: preset cpu-gloo, no measurement of this machine"));
  EXPECT_THAT(of(kNoOverhead), ElementsAre(HasSubstr("host overhead: none")));
  EXPECT_TRUE(result_remarks({}, Metric::throughput, std::nullopt).empty());
}

TEST(ResultRemarks, NameTheRanksThatLostTheirDevice) {
  TuningResult result;
  result.lost_devices = {"rank 3 on b: no GPU"};

  const auto remarks = result_remarks(result, Metric::throughput);

  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0], "a rank lost its device and got no more work: rank 3 on b: no GPU");
}

}  // namespace
}  // namespace dstune
