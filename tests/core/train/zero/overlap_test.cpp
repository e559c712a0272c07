// What overlap_comm hides: the simulated device against a schedule that is made here, from a record
// of what a step queues where.
#include <algorithm>
#include <array>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::overlap_test {
namespace {

using sim::SimCollectives;
using sim::SimDevice;
using sim::SimNetwork;
using sim::SimSpeed;

constexpr int kRanks = 8;
constexpr Bytes kLimit = Bytes{1} << 40U;

RunSettings gpt2_medium() {
  RunSettings settings;
  settings.model.vocab_size = 50257;
  settings.model.max_positions = 1024;
  settings.model.hidden_size = 1024;
  settings.model.inner_size = 4096;
  settings.model.num_layers = 24;
  settings.model.num_heads = 16;
  settings.sequence_length = 1024;
  settings.memory_limit = kLimit;
  return settings;
}

StepConfig config_of(int stage, bool overlaps) {
  return make_step_config(json::object{
      {"train_micro_batch_size_per_gpu", 1},
      {"gradient_accumulation_steps", 2},
      {"bf16", {{"enabled", true}}},
      {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}}},
      {"zero_optimization",
       {{"stage", stage}, {"overlap_comm", overlaps}, {"reduce_bucket_size", 50'000'000}}}});
}

/// The second step, in which the state of the optimizer is there.
Seconds time_of_second_step(int stage, bool overlaps, Device& device, Collectives& collectives) {
  TrainingStep step(gpt2_medium(), config_of(stage, overlaps), device, collectives);
  step.run();
  return step.run().total;
}

/// What was queued: work for a stream, or a meeting of two.
struct Entry {
  enum class Kind { work, record, wait, host_wait, synchronize } kind;
  Stream stream = Stream::compute;
  Seconds cost = 0;
  std::size_t event = 0;  // the place of its entry
};

/// Writes down what is queued. The time of an event is the place of its entry.
class RecordingDevice final : public DryDevice {
 public:
  RecordingDevice() : DryDevice(kLimit) {}

  bool overlaps() const override { return true; }
  void add_work(Seconds cost) { entries.push_back({Entry::Kind::work, current_stream(), cost}); }

  std::vector<Entry> entries;

 private:
  void account(const Work& work) override {
    const SimSpeed speed;
    const auto traffic = static_cast<double>(work.read_bytes() + work.written_bytes());
    add_work(speed.latency + std::max(work.flops / speed.flops_per_s, traffic / speed.bytes_per_s));
  }
  void do_record(Stream stream, Event& event) override {
    event.time = static_cast<double>(entries.size());
    entries.push_back({Entry::Kind::record, stream});
  }
  void do_wait(Stream stream, const Event& event) override {
    entries.push_back({Entry::Kind::wait, stream, 0, static_cast<std::size_t>(event.time)});
  }
  void do_host_wait(const Event& event) override {
    entries.push_back(
        {Entry::Kind::host_wait, Stream::compute, 0, static_cast<std::size_t>(event.time)});
  }
  void do_synchronize() override { entries.push_back({Entry::Kind::synchronize}); }
};

class RecordingCollectives final : public DryCollectives {
 public:
  explicit RecordingCollectives(RecordingDevice& device)
      : DryCollectives(device, 0, kRanks), recording_(device) {}

 private:
  // Each of the N - 1 rounds of a ring sends an N-th of the message; an all-reduce has two rings.
  void account(CollectiveKind kind, Bytes bytes) override {
    const SimNetwork network;
    const int rings = kind == CollectiveKind::all_reduce ? 2 : 1;
    const double sent = static_cast<double>(bytes) * rings * (kRanks - 1) / kRanks;
    recording_.add_work(rings * (kRanks - 1) * network.latency + sent / network.bytes_per_s);
  }

  RecordingDevice& recording_;
};

/// When the host sees the end of each host_wait entry, if every entry begins as early as it can.
std::vector<Seconds> schedule(const std::vector<Entry>& entries) {
  std::array<Seconds, kStreams> busy_until{};
  Seconds host = 0;
  std::vector<Seconds> passed(entries.size());
  std::vector<Seconds> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    Seconds& stream = busy_until[static_cast<std::size_t>(entry.stream)];
    switch (entry.kind) {
      case Entry::Kind::work:
        stream = std::max(stream, host) + entry.cost;
        break;
      case Entry::Kind::record:
        passed[i] = std::max(stream, host);
        break;
      case Entry::Kind::wait:
        stream = std::max(stream, passed[entry.event]);
        break;
      case Entry::Kind::host_wait:
        host = std::max(host, passed[entry.event]);
        seen.push_back(host);
        break;
      case Entry::Kind::synchronize:
        host = std::max(host, *std::max_element(busy_until.begin(), busy_until.end()));
        break;
    }
  }
  return seen;
}

class Overlap : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Stages, Overlap, testing::Values(1, 2, 3));

Seconds sum_of(const Ledger& ledger, Seconds CollectiveLine::*time) {
  Seconds sum = 0;
  for (const CollectiveLine& line : ledger.collectives()) sum += line.*time;
  return sum;
}

TEST_P(Overlap, TakesTheTimeOfTheSchedule) {
  for (const bool overlaps : {false, true}) {
    SimDevice device(kLimit);
    SimCollectives collectives(device, 0, kRanks);
    const Seconds simulated = time_of_second_step(GetParam(), overlaps, device, collectives);

    RecordingDevice recording;
    RecordingCollectives recorded(recording);
    time_of_second_step(GetParam(), overlaps, recording, recorded);
    const std::vector<Seconds> seen = schedule(recording.entries);

    // The last one is the end of the step, and the last but one that is not of the step its begin.
    EXPECT_GT(simulated, 0);
    EXPECT_DOUBLE_EQ(seen.back(), device.now());
    std::cout << "stage " << GetParam() << (overlaps ? ", overlap_comm: " : ": ") << simulated
              << " s, exposed " << sum_of(device.ledger(), &CollectiveLine::exposed)
              << " s, hidden " << sum_of(device.ledger(), &CollectiveLine::overlapped) << " s\n";
  }
}

// DeepSpeed 0.17.5 to 0.18.4 wait for each bucket that they have handed over.
TEST(OverlapOfAReleaseThatWaits, HidesNothing) {
  const auto time_of = [](bool overlaps, bool waits) {
    StepConfig config = config_of(2, overlaps);
    config.behaviour.waits_for_each_bucket = waits;
    SimDevice device(kLimit);
    SimCollectives collectives(device, 0, kRanks);
    TrainingStep step(gpt2_medium(), config, device, collectives);
    step.run();
    return step.run().total;
  };

  EXPECT_LT(time_of(true, false), time_of(false, false));
  EXPECT_NEAR(time_of(true, true), time_of(false, false), 0.02 * time_of(false, false));
}

/// Host time of the hooks of all gradients in one step.
Seconds time_of_hooks(int stage, const char* release, Seconds hook) {
  RunSettings settings = gpt2_medium();
  settings.host_overhead.at(HostEvent::gradient_hook) = hook;
  StepConfig config = config_of(stage, false);
  config.behaviour = behaviour_of(*parse_deepspeed_version(release));
  DryDevice device(kLimit);
  DryCollectives collectives(device, 0, kRanks);
  TrainingStep step(settings, config, device, collectives);
  step.run();
  for (const HostLine& line : device.ledger().host()) {
    if (line.event == HostEvent::gradient_hook) return line.time;
  }
  return 0;
}

// GPT-2's 292 tensors in two micro-steps.
TEST(HooksOfAReleaseThatCountsInThem, CostWhatParametersAreMany) {
  constexpr double kTensors = 292;
  for (const int stage : {1, 2, 3}) {
    const Seconds more =
        time_of_hooks(stage, "0.18.6", 1e-4) - time_of_hooks(stage, "0.18.7", 1e-4);
    EXPECT_NEAR(more, 2 * kTensors * kTensors * 3.5e-6, 1e-6) << stage;
  }
  EXPECT_EQ(time_of_hooks(2, "0.18.6", 0), 0) << "none is none";
}

}  // namespace
}  // namespace dstune::overlap_test
