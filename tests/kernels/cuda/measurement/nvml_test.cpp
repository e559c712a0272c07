#include "kernels/cuda/measurement/nvml.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kernels/cuda/measurement/fake_nvml.hpp"

namespace dstune::cuda::nvml_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr const char* kBusId = "0000:3b:00.0";

class Nvml : public testing::TestWithParam<const char*> {
 protected:
  Nvml() : library_(dlopen(GetParam(), RTLD_NOW)) {
    using GetState = test::FakeNvml*();
    const auto get_state = reinterpret_cast<GetState*>(dlsym(library_, "fake_nvml"));
    state_ = get_state();
    *state_ = {};
  }
  ~Nvml() override { dlclose(library_); }

  DeviceReading read() const { return GpuMonitor::open(kBusId, false, GetParam())->read(); }

  void* library_;
  test::FakeNvml* state_;
};

TEST_P(Nvml, ReadsClocksHeatPowerAndEnergyInTheirUnits) {
  const DeviceReading reading = read();

  EXPECT_EQ(reading.sm_clock_mhz, 1401);
  EXPECT_EQ(reading.max_sm_clock_mhz, 1981);
  EXPECT_EQ(reading.memory_clock_mhz, 1402);
  EXPECT_EQ(reading.temperature_c, 83);
  EXPECT_DOUBLE_EQ(reading.power_w.value(), 612.5);
  EXPECT_DOUBLE_EQ(reading.energy_j.value(), 5'000'000'000.5);
}

TEST_P(Nvml, NamesWhatThrottles) {
  state_->reasons = 0x04 | 0x40;
  EXPECT_THAT(read().throttle_reasons, ElementsAre("power cap", "heat (hardware)"));
  state_->reasons = 0x08 | 0x10 | 0x20 | 0x80;
  EXPECT_THAT(read().throttle_reasons,
              ElementsAre("hardware slowdown", "sync boost with another GPU", "heat (software)",
                          "power brake"));
}

TEST_P(Nvml, AnIdleGpuAndClocksThatAreSetAreNoThrottling) {
  state_->reasons = 0x01 | 0x02 | 0x100;

  EXPECT_THAT(read().throttle_reasons, IsEmpty());
}

TEST_P(Nvml, CountsForHowLongWhatHeldItBack) {
  state_->heat_ns = 2'500'000'000;

  EXPECT_THAT(read().throttle_times,
              UnorderedElementsAre(Pair("power cap", 0), Pair("heat", 2.5), Pair("board limit", 0),
                                   Pair("reliability limit", 0)));
}

TEST_P(Nvml, CountsTheProcessesBesideThisOne) {
  for (const auto& [processes, others] : {std::pair{0U, 0}, {1U, 0}, {3U, 2}, {40U, 39}}) {
    state_->processes = processes;
    EXPECT_EQ(read().other_processes, others);
  }
}

TEST_P(Nvml, SaysOfAMigInstanceNothingThatIsOfTheWholeGpu) {
  state_->processes = 3;

  const DeviceReading reading = GpuMonitor::open(kBusId, true, GetParam())->read();

  EXPECT_EQ(reading.sm_clock_mhz, 1401);
  EXPECT_EQ(reading.temperature_c, 83);
  EXPECT_EQ(reading.power_w, std::nullopt);
  EXPECT_EQ(reading.energy_j, std::nullopt);
  EXPECT_EQ(reading.other_processes, std::nullopt);
}

TEST_P(Nvml, SaysNothingOfWhatFails) {
  state_->fails = true;
  state_->reasons = 0x04;
  state_->processes = 3;

  EXPECT_EQ(read(), DeviceReading{});
}

TEST_P(Nvml, KnowsOnlyTheGpuItHas) {
  EXPECT_EQ(GpuMonitor::open("0000:af:00.0", false, GetParam()), nullptr);
}

TEST_P(Nvml, IsAbsentWithoutADriver) {
  state_->fails_to_set_up = true;

  EXPECT_EQ(GpuMonitor::open(kBusId, false, GetParam()), nullptr);
  EXPECT_EQ(state_->shut_down_calls, 0);
}

TEST_P(Nvml, IsShutDownAsOftenAsItIsSetUp) {
  read();
  GpuMonitor::open("0000:af:00.0", false, GetParam());

  EXPECT_EQ(state_->set_up_calls, 2);
  EXPECT_EQ(state_->shut_down_calls, 2);
}

INSTANTIATE_TEST_SUITE_P(Libraries, Nvml, testing::Values(DSTUNE_FAKE_NVML, DSTUNE_FAKE_OLD_NVML),
                         [](const auto& test) { return test.index == 0 ? "Newer" : "Older"; });

TEST(WithoutNvml, ThereIsNoMonitor) {
  EXPECT_EQ(GpuMonitor::open(kBusId, false, "libno-such-library.so.1"), nullptr);
  EXPECT_EQ(GpuMonitor::open(kBusId, false, "libc.so.6"),
            nullptr);  // a library without the functions
}

}  // namespace
}  // namespace dstune::cuda::nvml_test
