// Where the step spends the time of DeepSpeed's host code, on a machine with virtual time.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/dry/clocked_device.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/host_overhead.hpp"
#include "core/train/families/families.hpp"
#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::host_overhead_of_steps_test {
namespace {

using test::TinyExperiment;

constexpr std::int64_t kAccumulation = 3;
constexpr int kRanks = 2;

struct Step {
  Seconds total = 0;
  Ledger ledger;

  std::uint64_t calls(HostEvent event) const {
    for (const HostLine& line : ledger.host()) {
      if (line.event == event) return line.calls;
    }
    return 0;
  }
  Seconds time(HostEvent event) const {
    for (const HostLine& line : ledger.host()) {
      if (line.event == event) return line.time;
    }
    return 0;
  }
};

/// The second step of an experiment: the optimizer's state is there.
Step run(const TinyExperiment& tiny, const HostOverhead& overhead) {
  const Experiment experiment = tiny.make();
  RunSettings settings = experiment.settings;
  settings.host_overhead = overhead;
  sim::SimDevice device(settings.memory_limit);
  sim::SimCollectives collectives(device, 0, experiment.ranks);
  TrainingStep step(settings, experiment.ds_config.step(), device, collectives);
  step.run();
  const Seconds total = step.run().total;
  return {total, device.ledger()};
}

TinyExperiment in_stage(int stage) {
  TinyExperiment tiny{stage, kRanks, 1, kAccumulation, DType::fp32, false, {}};
  tiny.zero["reduce_bucket_size"] = 100;
  return tiny;
}

std::uint64_t tensors_of(const TinyExperiment& tiny) {
  return make_model_parameters(tiny.model).tensors.size();
}

HostOverhead preset(std::string_view name) { return host_overhead_preset(name).value(); }

class HostOverheadOfStage : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, HostOverheadOfStage, testing::Range(0, 4));

// The host runs ahead of the device: the step takes at least as long as the longer of the two, and
// at most as long as both.
TEST_P(HostOverheadOfStage, MakesTheStepLongerByAtMostWhatTheLedgerSays) {
  const TinyExperiment tiny = in_stage(GetParam());
  const Step without = run(tiny, {});

  const Step with = run(tiny, preset(kCudaOverhead));

  EXPECT_EQ(without.ledger.host_time(), 0);
  EXPECT_GT(with.ledger.host_time(), 0);
  EXPECT_GE(with.total, with.ledger.host_time());
  EXPECT_GE(with.total, without.total);
  EXPECT_LE(with.total, without.total + with.ledger.host_time() + 1e-9);
  EXPECT_TRUE(with.ledger.same_work(without.ledger));
}

TEST_P(HostOverheadOfStage, CountsGradientsAsStagesHandleThem) {
  const TinyExperiment tiny = in_stage(GetParam());
  const std::uint64_t times[] = {0, 1, kAccumulation, kAccumulation};

  const Step step = run(tiny, {});

  EXPECT_EQ(step.calls(HostEvent::gradient_hook), times[GetParam()] * tensors_of(tiny));
}

// Waits for parameters are part of the modules' hooks, those for flags and norms of the tensors'.
TEST_P(HostOverheadOfStage, CountsEveryCollectiveAndEveryOtherWait) {
  const Step step = run(in_stage(GetParam()), {});

  std::uint64_t collectives = 0;
  std::uint64_t of_them_pipelined = 0;
  std::uint64_t waits = 0;
  for (const CollectiveLine& line : step.ledger.collectives()) {
    collectives += line.calls;
    of_them_pipelined += line.pipelined;
  }
  for (const SyncLine& line : step.ledger.syncs()) {
    const bool is_one = line.reason == HostSync::timer || line.reason == HostSync::reduction;
    waits += is_one ? line.calls : 0;
  }
  const std::uint64_t pipelined = step.calls(HostEvent::pipelined_collective);
  EXPECT_EQ(step.calls(HostEvent::collective) + pipelined, collectives);
  EXPECT_EQ(pipelined > 0, GetParam() == 3);
  EXPECT_EQ(pipelined, of_them_pipelined);
  EXPECT_EQ(step.calls(HostEvent::synchronization), waits);
}

// In bf16 stage 0 reads one after every tensor.
TEST(HostOverhead, TakesReadingAFlagForPartOfATensorsUpdate) {
  TinyExperiment tiny = in_stage(0);
  const Step fp32 = run(tiny, {});
  tiny.dtype = DType::bf16;

  const Step bf16 = run(tiny, {});

  const auto flags = std::ranges::find(bf16.ledger.syncs(), HostSync::overflow, &SyncLine::reason);
  ASSERT_NE(flags, bf16.ledger.syncs().end());
  EXPECT_EQ(flags->calls, tensors_of(tiny));
  EXPECT_EQ(bf16.calls(HostEvent::synchronization), fp32.calls(HostEvent::synchronization));
}

constexpr Seconds kOverhead = 20;  // of a collective

/// Its calls, and the end of coalesced ones, take the host's time, as NCCL's do.
class DearCollectives final : public DryCollectives {
 public:
  DearCollectives(Device& device, Seconds launch)
      : DryCollectives(device, 0, kRanks), launch_(launch) {}

 private:
  void account(CollectiveKind /*kind*/, Bytes /*bytes*/) override { spend(); }
  void do_end_coalescing() override { spend(); }
  void spend() { device().spend_host_time(launch_); }

  Seconds launch_;
};

class LaunchOverhead : public testing::Test {
 protected:
  LaunchOverhead() {
    HostOverhead overhead;
    overhead.at(HostEvent::collective) = kOverhead;
    device_.set_host_overhead(overhead);
  }

  /// Host time of one all-reduce.
  Seconds call(Collectives& collectives, Purpose purpose = Purpose::gradients) {
    const Seconds begin = device_.now();
    collectives.all_reduce(buffer_.tensor(DType::fp32), ReduceOp::sum, purpose);
    return device_.now() - begin;
  }

  sim::SimDevice device_{1000};
  Buffer buffer_ = make_buffer(device_, MemoryCategory::temporaries, 1, DType::fp32);
};

TEST_F(LaunchOverhead, HoldsWhatTheLaunchBeforeTook) {
  DearCollectives collectives(device_, 4);

  EXPECT_EQ(call(collectives), kOverhead + 4);
  EXPECT_EQ(call(collectives), kOverhead);
  EXPECT_EQ(call(collectives), kOverhead);
  EXPECT_EQ(device_.ledger().host_time(), 3 * kOverhead);
}

TEST_F(LaunchOverhead, IsNotSpentWhereALaunchTakesLonger) {
  DearCollectives collectives(device_, kOverhead + 5);

  call(collectives);

  EXPECT_EQ(call(collectives), kOverhead + 5);
}

TEST_F(LaunchOverhead, HoldsAllOfCoalescedCalls) {
  DearCollectives collectives(device_, 4);
  CoalescedCalls calls(collectives);
  call(collectives);
  call(collectives);
  calls.end();

  EXPECT_EQ(call(collectives), kOverhead - 3 * 4 + 4);
}

TEST_F(LaunchOverhead, HoldsNoMoreThanOneLaunch) {
  DearCollectives collectives(device_, 4);
  EXPECT_EQ(call(collectives, Purpose::other), 4);
  EXPECT_EQ(call(collectives, Purpose::other), 4);

  EXPECT_EQ(call(collectives), kOverhead);
}

/// Virtual time, one thing at a time, as on a CPU.
class OneAtATime final : public ClockedDevice {
 public:
  OneAtATime() : ClockedDevice(1000) {}
  std::string name() const override { return "one at a time"; }
  void spend_host_time(Seconds time) override { advance_host(time); }
};

/// The library takes 10 s, and 2 s a byte among two ranks, for an all-reduce of fp32.
class LibraryTime : public testing::Test {
 protected:
  LibraryTime() {
    overhead_.at(HostEvent::collective) = kOverhead;
    overhead_.collectives = {{.latency = 10, .bus_bytes_per_s = 0.5}};
    device_.set_host_overhead(overhead_);
  }

  /// Of one all-reduce of 4 bytes, which the library does in 18 s.
  CollectiveLine call(Seconds own, Purpose purpose = Purpose::gradients) {
    DearCollectives collectives(device_, own);
    collectives.all_reduce(buffer_.tensor(DType::fp32), ReduceOp::sum, purpose);
    return device_.ledger().collectives().back();
  }

  HostOverhead overhead_;
  OneAtATime device_;
  Buffer buffer_ = make_buffer(device_, MemoryCategory::temporaries, 1, DType::fp32);
};

TEST_F(LibraryTime, IsWaitedForAfterTheOwnCollective) {
  const CollectiveLine line = call(5);

  EXPECT_EQ(line.exposed, 5);
  EXPECT_EQ(line.added, 13);
  EXPECT_EQ(device_.now(), kOverhead + 18);
  EXPECT_EQ(device_.ledger().communication_time(), 18);
}

TEST_F(LibraryTime, IsNotTakenBackFromASlowerCollective) {
  const CollectiveLine line = call(19);

  EXPECT_EQ(line.exposed, 19);
  EXPECT_EQ(line.added, 0);
  EXPECT_EQ(device_.now(), kOverhead + 19);
}

// Their latencies run beside each other: what is left of them is the event's.
TEST_F(LibraryTime, OfPipelinedCallsIsTheirTransfersAlone) {
  overhead_.at(HostEvent::pipelined_collective) = 3;
  device_.set_host_overhead(overhead_);
  DearCollectives collectives(device_, 5);
  {
    const PipelinedCalls pipelined(collectives);
    for (int i = 0; i < 2; ++i) {
      collectives.all_reduce(buffer_.tensor(DType::fp32), ReduceOp::sum, Purpose::gradients);
    }
  }
  collectives.all_reduce(buffer_.tensor(DType::fp32), ReduceOp::sum, Purpose::gradients);

  const CollectiveLine line = device_.ledger().collectives().back();
  EXPECT_EQ(line.calls, 3);
  EXPECT_EQ(line.pipelined, 2);
  EXPECT_EQ(line.added, 3 + 3 + 13);
  EXPECT_EQ(device_.now(), 2 * (3 + 8) + kOverhead + 18);
}

TEST_F(LibraryTime, OfCoalescedCallsHasOneLatency) {
  DearCollectives collectives(device_, 0);
  CoalescedCalls calls(collectives);
  for (int i = 0; i < 3; ++i) {
    collectives.all_reduce(buffer_.tensor(DType::fp32), ReduceOp::sum, Purpose::gradients);
  }
  calls.end();

  EXPECT_EQ(device_.ledger().added_time(), 10 + 3 * 8);
}

TEST_F(LibraryTime, IsNoPartOfWhatIsNotTheStep) { EXPECT_EQ(call(5, Purpose::other).added, 0); }

// There the collectives are the training's own.
TEST_F(LibraryTime, IsNothingWhereStreamsOverlap) {
  sim::SimDevice device(1000);
  device.set_host_overhead(overhead_);
  DearCollectives collectives(device, 1);
  const Buffer buffer = make_buffer(device, MemoryCategory::temporaries, 1, DType::fp32);

  collectives.all_reduce(buffer.tensor(DType::fp32), ReduceOp::sum, Purpose::gradients);

  EXPECT_EQ(device.ledger().added_time(), 0);
  EXPECT_EQ(device.now(), kOverhead + 1);
}

// Stages 1 and 2: those that this rank owns. Stage 3: its shards of all.
TEST_P(HostOverheadOfStage, CountsTheTensorsOfTheOptimizerStep) {
  const TinyExperiment tiny = in_stage(GetParam());

  const std::uint64_t tensors = run(tiny, {}).calls(HostEvent::optimizer_tensor);

  if (GetParam() == 0 || GetParam() == 3) {
    EXPECT_EQ(tensors, tensors_of(tiny));
  } else {
    EXPECT_GT(tensors, 0U);
    EXPECT_LT(tensors, tensors_of(tiny));
  }
}

// DeepSpeed 0.19.8's has_inf_or_nan: 13 operators for a tensor that this rank looks at, in stages 0
// to 2. Stage 3 looks at its whole shard, and in fp32 nobody does. Counted in the real one.
TEST_P(HostOverheadOfStage, AddsTheOverflowChecksOperatorsOf16Bits) {
  HostOverhead overhead;
  overhead.at(HostEvent::operator_forward) = 1e-6;
  TinyExperiment tiny = in_stage(GetParam());
  const auto time_of = [&](DType dtype) {
    tiny.dtype = dtype;
    const Step step = run(tiny, overhead);
    return std::pair(step.time(HostEvent::optimizer_tensor),
                     step.calls(HostEvent::optimizer_tensor));
  };

  EXPECT_EQ(time_of(DType::fp32).first, 0);
  const auto [time, tensors] = time_of(DType::fp16);
  EXPECT_NEAR(time, GetParam() == 3 ? 0 : 13e-6 * static_cast<double>(tensors), 1e-12);
}

// Four per module and micro-step, but no hook ends the backward of what gets no tensor with a
// gradient by place: the two outermost modules and both embeddings.
TEST(HostOverhead, CountsHooksOfModulesInStage3Alone) {
  const TinyExperiment tiny = in_stage(3);
  const std::size_t modules = make_model_parameters(tiny.model).modules.size();

  const std::uint64_t hooks = run(tiny, {}).calls(HostEvent::sub_module_hook);

  EXPECT_EQ(hooks, kAccumulation * (4 * modules - 4));
  EXPECT_EQ(run(in_stage(2), {}).calls(HostEvent::sub_module_hook), 0U);
}

// Gathered once for both passes of a micro-step, since what is used again soon stays.
TEST(HostOverhead, CountsTensorsThatAreGatheredForModulesAndNotThoseThatStay) {
  TinyExperiment tiny = in_stage(3);
  const std::uint64_t of_those_that_stay = run(tiny, {}).calls(HostEvent::gathered_tensor);
  tiny.zero["stage3_param_persistence_threshold"] = 0;
  HostOverhead overhead;
  overhead.at(HostEvent::gathered_tensor) = 1e-3;

  const Step step = run(tiny, overhead);

  EXPECT_EQ(of_those_that_stay, 0U);
  EXPECT_EQ(step.calls(HostEvent::gathered_tensor), kAccumulation * tensors_of(tiny));
  EXPECT_NEAR(step.total - run(tiny, {}).total, step.time(HostEvent::gathered_tensor),
              0.1 * step.time(HostEvent::gathered_tensor));
  EXPECT_EQ(run(in_stage(2), {}).calls(HostEvent::gathered_tensor), 0U);
}

}  // namespace
}  // namespace dstune::host_overhead_of_steps_test
