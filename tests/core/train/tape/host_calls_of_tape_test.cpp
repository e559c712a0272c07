// What a tape's operations cost the host beside their launches: PyTorch's operators and modules.
#include <functional>

#include <gtest/gtest.h>

#include "core/device/dry/clocked_device.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/tape/modules.hpp"

namespace dstune::host_calls_of_tape_test {
namespace {

constexpr Seconds kLaunch = 3;
constexpr Seconds kForward = 10;
constexpr Seconds kBackward = 20;
constexpr Seconds kModule = 100;

/// A launch takes the host's time, as on a GPU.
class Launching final : public ClockedDevice {
 public:
  Launching() : ClockedDevice(1'000'000) {}
  std::string name() const override { return "launching"; }
  bool overlaps() const override { return overlaps_; }
  void spend_host_time(Seconds time) override { advance_host(time); }

  bool overlaps_ = true;

 private:
  void account(const Work& /*work*/) override { advance_host(kLaunch); }
};

class NoHooks final : public ModuleHooks {
 public:
  void fetch(std::size_t /*module*/) override {}
  void release(std::size_t /*module*/) override {}
  Tensor parameter(std::size_t /*tensor*/) const override { return {}; }
  bool is_trainable(std::size_t /*tensor*/) const override { return true; }
  void gradient_ready(std::size_t /*tensor*/, Buffer /*gradient*/) override {}
};

class HostCallsOfTape : public testing::Test {
 protected:
  HostCallsOfTape() {
    HostOverhead overhead;
    overhead.at(HostEvent::operator_forward) = kForward;
    overhead.at(HostEvent::operator_backward) = kBackward;
    overhead.at(HostEvent::module_call) = kModule;
    device_.set_host_overhead(overhead);
  }

  Seconds time_of(const std::function<void()>& body) {
    const Seconds begin = device_.now();
    body();
    return device_.now() - begin;
  }
  Copy copy() const { return {value_.tensor(DType::fp32), value_.tensor(DType::fp32)}; }

  Launching device_;
  Buffer value_ = make_buffer(device_, MemoryCategory::activations, 4, DType::fp32);
  NoHooks hooks_;
  BatchContext context_{MicroBatch{}, device_};
  Tape tape_{context_, hooks_};
};

TEST_F(HostCallsOfTape, HoldTheLaunch) {
  EXPECT_EQ(time_of([&] { tape_.run(copy()); }), kForward);
  EXPECT_EQ(time_of([&] { tape_.run(copy(), 3); }), 3 * kForward);
}

TEST_F(HostCallsOfTape, ComeOnTopOfTheComputationOfACpu) {
  device_.overlaps_ = false;

  EXPECT_EQ(time_of([&] { tape_.run(copy()); }), kLaunch + kForward);
}

TEST_F(HostCallsOfTape, AreOthersOnTheWayBack) {
  const Value out = tape_.record({}, [&](Tape& back, const Value&) { back.run(copy()); });

  EXPECT_EQ(time_of([&] { tape_.backward(out.node, {}); }), kBackward);
  EXPECT_EQ(device_.ledger().host().back().event, HostEvent::operator_backward);
}

TEST_F(HostCallsOfTape, AreNoneForWhatPytorchDoesNotCall) {
  EXPECT_EQ(time_of([&] { tape_.run(FillZero{value_.tensor(DType::fp32)}); }), kLaunch);
  EXPECT_TRUE(device_.ledger().host().empty());
}

TEST_F(HostCallsOfTape, HaveOneOfEachModule) {
  const auto nothing = [] { return Value(); };
  EXPECT_EQ(time_of([&] { run_module(tape_, 0, nothing); }), kModule);
  EXPECT_EQ(device_.ledger().host().front().event, HostEvent::module_call);
}

// The device waits for the host meanwhile, which is the event's (Timeline).
TEST_F(HostCallsOfTape, LeaveTheDeviceIdle) {
  tape_.run(copy());
  device_.synchronize();
  device_.timeline().settle(device_, device_.ledger());

  EXPECT_EQ(device_.ledger().host().front().idle, kForward - kLaunch);
}

}  // namespace
}  // namespace dstune::host_calls_of_tape_test
