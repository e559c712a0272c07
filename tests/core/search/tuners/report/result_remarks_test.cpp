#include "core/search/tuners/report/result_remarks.hpp"

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"
#include "tests/support/set_in.hpp"

namespace dstune::result_remarks_test {
namespace {

using testing::HasSubstr;
using testing_support::make_experiment;

/// One sample per step of `seconds`.
Measured measured(Seconds seconds) {
  Measured measured = testing_support::make_measured(1 / seconds);
  measured.step_time = {seconds, seconds, seconds, 1};
  return measured;
}

Record record(int stage, Outcome outcome, std::string_view preset = kGlooOverhead) {
  Experiment experiment = make_experiment(stage, 1);
  experiment.settings.host_overhead = host_overhead_preset(preset).value();
  return testing_support::make_record(experiment, std::move(outcome));
}

TEST(ResultRemarks, WarnOfAnOptimumThatIsKnownToBeWrong) {
  Record best = record(3, measured(0.8));
  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Not(testing::Contains(HasSubstr("fast and wrong"))));
  testing_support::set_in(best.experiment.ds_config, "zero_optimization", "zero_hpz_partition_size",
                          2);

  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Contains(HasSubstr("z3_gas1_tmbspg1 may be fast and wrong: stage 3 with "
                                          "zero_hpz_partition_size")));
}

TEST(CheckpointingRemark, SaysWhatTheTrainingProgramHasToDo) {
  const Record plain = record(1, measured(0.9));
  Record with = plain;
  with.experiment.ds_config.set("dstune", json::object{{"activation_checkpointing", true}});

  EXPECT_EQ(checkpointing_remark({plain}, plain), "");
  EXPECT_THAT(checkpointing_remark({plain, with}, with),
              HasSubstr("model.gradient_checkpointing_enable({'use_reentrant': False})"));
  EXPECT_THAT(checkpointing_remark({plain, with}, plain), HasSubstr("must not switch it on"));
}

TEST(PeakRemark, HoldsTheWinnerAgainstThePeakWhereThereIsOne) {
  Measured winner = measured(0.8);
  winner.flops_per_s_per_rank = 250e12;
  EXPECT_EQ(peak_remark({record(1, winner)}, record(1, winner)), "");
  winner.device_peaks = {612e12, 3e12};

  EXPECT_THAT(result_remarks({record(1, winner)}, Metric::flops, record(1, winner)),
              testing::Contains("z1_gas1_tmbspg1 runs at 41 % of the measured GEMM peak (612.0 "
                                "TFLOP/s)"));
}

TEST(CoresRemark, SaysThatTheRanksHadFewerCoresThanTheyCouldUse) {
  Measured alone = measured(1);
  alone.core_use = {{1, 0.97, 0}, {2, 1.9, 0}};
  Measured crowded = measured(1);
  crowded.core_use = {{1, 0.31, 0}, {4, 1.24, 0}};

  EXPECT_EQ(cores_remark({record(1, measured(1))}), "");
  EXPECT_EQ(cores_remark({record(1, alone)}), "");
  EXPECT_THAT(cores_remark({record(1, crowded)}), HasSubstr("had 31 % of a core (median)"));
}

TEST(SlowStepsRemark, NamesExperimentsWhoseStepsHaveTwoModesOrAHeavyTail) {
  Measured modes = measured(1);
  modes.steps = 9;
  modes.slow_steps = SlowPart{4, 0.2};
  Measured tail = modes;
  tail.slow_steps = SlowPart{1, 0.496};

  const std::string remark =
      slow_steps_remark({record(1, measured(1)), record(2, modes), record(3, tail)});

  EXPECT_EQ(slow_steps_remark({record(1, measured(1))}), "");
  EXPECT_THAT(remark, HasSubstr("(two modes: 4 of 9 steps took 20 % longer), "));
  EXPECT_THAT(remark, testing::EndsWith("(a heavy tail: 1 of 9 steps took 50 % longer)"));
}

TEST(SlowStepsRemark, NamesFiveAtMost) {
  Measured tail = measured(1);
  tail.slow_steps = SlowPart{1, 0.5};
  const std::vector<Record> records(7, record(1, tail));

  EXPECT_THAT(slow_steps_remark(records), testing::EndsWith(" and 2 more"));
}

TEST(ResultRemarks, NameSlowRanks) {
  TuningResult result;
  result.records = {record(1, measured(1))};
  result.slow_workers = {"rank 3 on b had 25 % of a core"};

  EXPECT_EQ(result_remarks(result, Metric::throughput).back(),
            "a slow rank: rank 3 on b had 25 % of a core");
}

TEST(ArithmeticRemark, IsOfSixteenBitsOnTheCpu) {
  auto bf16 = record(1, measured(1));
  bf16.experiment.ds_config.set("bf16", {{"enabled", true}});
  auto simulated = bf16;
  simulated.experiment.settings.backend = "sim";

  EXPECT_THAT(arithmetic_remark({record(1, measured(1)), bf16}), HasSubstr("computes in fp32"));
  EXPECT_EQ(arithmetic_remark({record(1, measured(1))}), "");
  EXPECT_EQ(arithmetic_remark({simulated}), "");
  bf16.outcome = OutOfMemory{};
  EXPECT_EQ(arithmetic_remark({bf16}), "");
}

TEST(ResultRemarks, NameTheProfileThatWasMeasured) {
  auto best = record(1, measured(1));
  best.experiment.settings.host_overhead.seconds[0] = 1;
  best.experiment.settings.host_overhead.origin = "mine.json, measured on node1";

  EXPECT_EQ(result_remarks({best}, Metric::throughput, best).front(),
            "host overhead: profile mine.json, measured on node1");
}

TEST(LibraryRemark, SaysWhatAStepWaitsForProductsOfTorch) {
  Record best = record(1, measured(1));
  EXPECT_EQ(library_remark(best), "");
  best.experiment.settings.threads_per_rank = 2;
  best.experiment.settings.host_overhead.products = {{DType::fp32, 1, 1e9}, {DType::bf16, 2, 1e9}};
  EXPECT_EQ(library_remark(best), "") << "of other threads, and of another type";

  best.experiment.settings.host_overhead.products.push_back({DType::fp32, 2, 1e9});
  EXPECT_THAT(library_remark(best), HasSubstr("torch multiplies fp32 as fast as this program or"));
  std::get<Measured>(best.outcome).ledger.add_library_wait(0.25);
  EXPECT_EQ(library_remark(best),
            "some fp32 operations are slower in torch than here: a step of z1_gas1_tmbspg1 waits "
            "250.0 ms for that, according to the profile");
  best.experiment.settings.host_overhead.products.clear();
  EXPECT_THAT(library_remark(best), HasSubstr("waits 250.0 ms")) << "of a profile without products";

  best.experiment.settings.backend = "sim";
  EXPECT_EQ(library_remark(best), "") << "nothing was multiplied on a CPU";
}

Record on_device(std::optional<DeviceUse> use) {
  Measured result = measured(1);
  result.device_use = std::move(use);
  return record(1, result);
}

TEST(StandInRemark, HasWhatStoodInForPytorchsKernels) {
  Measured measured;
  EXPECT_EQ(stand_in_remark(record(1, measured)), "");
  measured.ledger.note_stand_in("attention: another");
  measured.ledger.note_stand_in("softmax: another");
  measured.ledger.note_stand_in("attention: another");
  EXPECT_EQ(stand_in_remark(record(1, measured)), "attention: another; softmax: another");
  EXPECT_EQ(stand_in_remark(record(1, OutOfMemory{})), "");
  const Record best = record(1, measured);
  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Contains("attention: another; softmax: another"));
}

TEST(OffloadRemark, SaysHowManyThreadsTheUpdateHadAndWhoWouldGiveItFewer) {
  Measured measured;
  EXPECT_EQ(offload_remark(record(1, measured)), "");
  measured.ledger.add_host_pass(MemoryPass::update, 16, 12, 0.5);
  Record best = record(1, measured);
  best.experiment.settings.backend = "sim";
  EXPECT_EQ(offload_remark(best),
            "the time of the offloaded optimizer is estimated from guessed rates of copies and of "
            "the host's memory");
  best.experiment.settings.backend = "cuda";
  best.experiment.settings.threads_per_rank = 8;
  EXPECT_EQ(
      offload_remark(best),
      "the offloaded optimizer ran on 8 threads of the host per rank: torchrun and accelerate "
      "give a rank one unless OMP_NUM_THREADS is set, and the update then takes longer; start "
      "the training with OMP_NUM_THREADS=8, or with deepspeed's --bind_cores_to_rank");

  EXPECT_THAT(
      offload_remark(best, HostRates{.passes = {{1, 8e9}, {8, 20e9}}, .threads = 8}),
      testing::HasSubstr("is set, and the update then takes 2.5 times as long, as measured; "
                         "start the training with OMP_NUM_THREADS=8"));
  EXPECT_EQ(offload_remark(best, HostRates{.passes = {{1, 20e9}, {8, 20e9}}, .threads = 8}),
            "the offloaded optimizer ran on 8 threads of the host per rank")
      << "one would do";

  best.experiment.settings.backend = "cpu";
  best.experiment.settings.threads_per_rank = 1;
  EXPECT_EQ(
      offload_remark(best),
      "the offloaded optimizer ran on 1 thread of the host per rank; copies between device and "
      "host are within one memory here, so their times are not those of a GPU's");
  EXPECT_THAT(result_remarks({best}, Metric::throughput, best),
              testing::Contains(offload_remark(best)));
}

TEST(AccumulationRemark, SaysWhatIsSavedWhereTheHostTakesATenthOrMore) {
  Measured measured;
  measured.step_time = {2, 2, 2, 0};
  measured.ledger.add_host_pass(MemoryPass::unscale, 4, 4, 0.3);
  measured.ledger.add_host_pass(MemoryPass::update, 16, 12, 0.5);

  EXPECT_EQ(accumulation_remark(record(1, measured)),
            "the host's passes over what is offloaded take 40 % of a step, once per step: with "
            "twice the accumulation steps, where the training allows the larger batch, a sample "
            "takes 20 % less");

  measured.step_time = {9, 9, 9, 0};
  EXPECT_EQ(accumulation_remark(record(1, measured)), "");
  EXPECT_EQ(accumulation_remark(record(1, Skipped{})), "");
}

TEST(OffloadRemark, IsAboutCopiesAloneWhereOnlyParametersAreOffloaded) {
  Measured measured;
  measured.ledger.add_host_pass(MemoryPass::master_cast, 16, 8, 0.5);
  measured.ledger.add_transfer({Transfer::host_to_device, TransferPurpose::parameter});
  Record best = record(1, measured);
  best.experiment.settings.backend = "sim";
  EXPECT_EQ(
      offload_remark(best),
      "the time of the copies of offloaded parameters is estimated from guessed rates of copies");
  best.experiment.settings.backend = "cpu";
  EXPECT_EQ(offload_remark(best),
            "parameters were copied between device and host within one memory here, so the times "
            "of these copies are not those of a GPU's");
  best.experiment.settings.backend = "cuda";
  EXPECT_EQ(offload_remark(best), "");
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
    const std::vector<Record> records = {record(1, measured(1), preset)};
    return result_remarks(records, Metric::throughput, records.front()).front();
  };

  EXPECT_THAT(of(kGlooOverhead),
              HasSubstr("host overhead: preset cpu-gloo, not measured on this machine: its picks "
                        "were 10 and 18 % slower in DeepSpeed"));
  EXPECT_THAT(of(kCudaOverhead),
              HasSubstr("on an H200 its pick was the fastest of 6 configurations"));
  EXPECT_THAT(of(kNoOverhead), HasSubstr("host overhead: none"));
  EXPECT_TRUE(result_remarks({}, Metric::throughput, std::nullopt).empty());
}

TEST(ResultRemarks, NameWhatTheProfileDoesNotTellApart) {
  Measured busy = measured(0.9);
  busy.ledger.add_host(HostEvent::collective, 0.4);
  const std::vector<Record> records = {record(1, measured(0.8)), record(2, busy)};

  EXPECT_THAT(result_remarks(records, Metric::throughput, records.front()),
              testing::Contains(HasSubstr("calibrate to tell z1 from z2")));
}

TEST(ResultRemarks, NameTheRanksThatLostTheirDevice) {
  TuningResult result;
  result.lost_devices = {"rank 3 on b: no GPU"};

  const auto remarks = result_remarks(result, Metric::throughput);

  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0], "a rank lost its device and got no more work: rank 3 on b: no GPU");
}

}  // namespace
}  // namespace dstune::result_remarks_test
