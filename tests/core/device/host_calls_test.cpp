// Host time of calls that are too short to be waited for one by one.
#include <cstdint>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::host_calls_test {
namespace {

// Calls are too short for a clock: what they take is spent when it has added up, or when the host
// waits for something.
class ShortCalls : public testing::Test {
 protected:
  ShortCalls() {
    HostOverhead overhead;
    overhead.at(HostEvent::operator_forward) = 10e-6;
    device_.set_host_overhead(overhead);
  }
  void call(std::uint64_t calls, Seconds already = 0) {
    device_.host_calls(HostEvent::operator_forward, calls, already);
  }

  cpu::CpuDevice device_{1000};
};

TEST_F(ShortCalls, CountAtOnce) {
  call(2);
  call(1);

  const HostLine line = device_.ledger().host().front();
  EXPECT_EQ(line.event, HostEvent::operator_forward);
  EXPECT_EQ(line.calls, 3);
  EXPECT_DOUBLE_EQ(line.time, 30e-6);
}

// They are beside what a profile has of the event, and no further one.
TEST_F(ShortCalls, AddOperatorsToAnEventThatIsCountedElsewhere) {
  sim::SimDevice sim(1000);
  HostOverhead overhead = device_.host_overhead();
  overhead.at(HostEvent::optimizer_tensor) = 100e-6;
  sim.set_host_overhead(overhead);

  sim.host_event(HostEvent::optimizer_tensor);
  sim.host_operators_of(HostEvent::optimizer_tensor, 13, 20e-6);

  const HostLine line = sim.ledger().host().front();
  EXPECT_EQ(line.event, HostEvent::optimizer_tensor);
  EXPECT_EQ(line.calls, 1);
  EXPECT_DOUBLE_EQ(line.time, 230e-6);
  EXPECT_DOUBLE_EQ(sim.now(), 210e-6);
}

TEST_F(ShortCalls, AreSpentTogether) {
  const Seconds begin = device_.now();
  for (int i = 0; i < 1000; ++i) call(1);

  EXPECT_GE(device_.now() - begin, 10e-3 - 50e-6);
}

TEST_F(ShortCalls, AreSpentBeforeAWait) {
  call(4);
  const Seconds begin = device_.now();
  device_.host_sync(HostSync::timer);

  EXPECT_GE(device_.now() - begin, 40e-6);
}

TEST_F(ShortCalls, TakeNothingBackFromASlowerLaunch) {
  sim::SimDevice sim(1000);
  sim.set_host_overhead(device_.host_overhead());
  sim.host_calls(HostEvent::operator_forward, 2, 5e-6);
  EXPECT_DOUBLE_EQ(sim.now(), 15e-6);
  sim.host_calls(HostEvent::operator_forward, 2, 1);
  sim.host_calls(HostEvent::operator_forward, 1);

  EXPECT_DOUBLE_EQ(sim.now(), 25e-6);
}

}  // namespace
}  // namespace dstune::host_calls_test
