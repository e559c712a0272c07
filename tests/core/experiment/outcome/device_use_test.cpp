#include "core/experiment/outcome/device_use.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"

namespace dstune::device_use_test {
namespace {

using testing::ElementsAre;

DeviceReading reading(double clock, double energy) {
  DeviceReading reading;
  reading.sm_clock_mhz = clock;
  reading.max_sm_clock_mhz = 2000;
  reading.temperature_c = 60;
  reading.power_w = 100;
  reading.energy_j = energy;
  return reading;
}

DeviceUse use_of(double clock, double max_clock) {
  DeviceUse use;
  use.sm_clock_mhz = clock;
  use.max_sm_clock_mhz = max_clock;
  use.temperature_c = 50;
  use.power_w = 300;
  use.energy_per_step_j = 30;
  return use;
}

TEST(MakeDeviceUse, IsTheMeanOfBothReadingsAndTheHotterOne) {
  DeviceReading after = reading(1600, 0);
  after.temperature_c = 70;

  const auto use = make_device_use(reading(1400, 0), after, 1, 1).value();

  EXPECT_EQ(use.sm_clock_mhz, 1500);
  EXPECT_EQ(use.max_sm_clock_mhz, 2000);
  EXPECT_EQ(use.sm_clock_share(), 0.75);
  EXPECT_EQ(use.temperature_c, 70);
}

TEST(MakeDeviceUse, PowerIsTheEnergyOverTheTime) {
  const auto use = make_device_use(reading(1, 1000), reading(1, 1600), 2, 3).value();

  EXPECT_EQ(use.power_w, 300);
  EXPECT_EQ(use.energy_per_step_j, 200);
}

TEST(MakeDeviceUse, WhatHeldItBackBetweenTheReadingsIsAReason) {
  DeviceReading before = reading(1, 0);
  DeviceReading after = reading(1, 0);
  before.throttle_times = {{"power cap", 5}, {"heat", 7}, {"board limit", 3}};
  after.throttle_times = {{"power cap", 5.5}, {"heat", 7.01}, {"board limit", 3}, {"new", 9}};

  const auto use = make_device_use(before, after, 2, 1).value();

  EXPECT_THAT(use.throttle_reasons, ElementsAre("power cap"));
}

TEST(MakeDeviceUse, WithoutEnergyPowerIsTheMeanReading) {
  DeviceReading after = reading(1, 0);
  after.energy_j.reset();
  after.power_w = 200;

  const auto use = make_device_use(reading(1, 0), after, 2, 3).value();

  EXPECT_EQ(use.power_w, 150);
  EXPECT_EQ(use.energy_per_step_j, std::nullopt);
}

TEST(MakeDeviceUse, ReasonsOfBothReadingsCountOnce) {
  DeviceReading before = reading(1, 0);
  DeviceReading after = before;
  before.throttle_reasons = {"power cap"};
  after.throttle_reasons = {"heat", "power cap"};
  before.other_processes = 2;

  const auto use = make_device_use(before, after, 1, 1).value();

  EXPECT_THAT(use.throttle_reasons, ElementsAre("power cap", "heat"));
  EXPECT_EQ(use.other_processes, 2);
}

TEST(MakeDeviceUse, NeedsBothReadings) {
  EXPECT_EQ(make_device_use(reading(1, 0), std::nullopt, 1, 1), std::nullopt);
  EXPECT_EQ(make_device_use(std::nullopt, reading(1, 0), 1, 1), std::nullopt);
}

TEST(MakeDeviceUse, WhatIsNotSaidStaysAbsent) {
  EXPECT_EQ(make_device_use(DeviceReading{}, DeviceReading{}, 1, 1), DeviceUse{});
  EXPECT_EQ(DeviceUse{}.sm_clock_share(), std::nullopt);
}

// 1500 MHz of 1600 are more than 1600 of 2000.
TEST(MergeDeviceUse, TakesTheSmallestShareTheHottestAndTheSums) {
  DeviceUse hot = use_of(1500, 1600);
  hot.temperature_c = 80;
  hot.throttle_reasons = {"heat"};
  hot.other_processes = 3;

  const auto group = merge({use_of(1800, 2000), use_of(1600, 2000), hot}).value();

  EXPECT_EQ(group.sm_clock_mhz, 1600);
  EXPECT_EQ(group.max_sm_clock_mhz, 2000);
  EXPECT_EQ(group.temperature_c, 80);
  EXPECT_EQ(group.power_w, 900);
  EXPECT_EQ(group.energy_per_step_j, 90);
  EXPECT_THAT(group.throttle_reasons, ElementsAre("heat"));
  EXPECT_EQ(group.other_processes, 3);
}

TEST(MergeDeviceUse, HasNoSumIfADeviceIsSilent) {
  DeviceUse silent = use_of(1, 1);
  silent.energy_per_step_j.reset();

  EXPECT_EQ(merge({use_of(1, 1), silent})->power_w, 600);
  EXPECT_EQ(merge({use_of(1, 1), silent})->energy_per_step_j, std::nullopt);
  EXPECT_EQ(merge({use_of(1, 1), std::nullopt})->power_w, std::nullopt);
  EXPECT_EQ(merge({std::nullopt, use_of(1, 1)})->energy_per_step_j, std::nullopt);
  EXPECT_EQ(merge({std::nullopt, use_of(1, 2)})->sm_clock_mhz, 1);
  EXPECT_EQ(merge({std::nullopt, std::nullopt}), std::nullopt);
}

TEST(DeviceUseJson, ReadsBackWholeAndWithHoles) {
  DeviceUse whole = use_of(1410.0 / 7, 1980);
  whole.throttle_reasons = {"power cap", "heat"};
  whole.other_processes = 1;

  for (const DeviceUse& use : {whole, DeviceUse{}}) {
    const std::string text = to_json_text(to_json(use), 0);
    EXPECT_EQ(device_use_from_json(parse_json(text).as_object()), use) << text;
  }
}

TEST(ThrottleText, NamesReasonsAndNumbers) {
  DeviceUse use = use_of(1410, 1980);
  use.throttle_reasons = {"power cap", "heat"};

  EXPECT_EQ(throttle_text(use), "power cap, heat: SM clock 1410 of 1980 MHz (71 %), 50 C, 300 W");
  EXPECT_EQ(throttle_text(use_of(1980, 1980)), "");
  use = {};
  use.throttle_reasons = {"power cap"};
  EXPECT_EQ(throttle_text(use), "power cap");
}

}  // namespace
}  // namespace dstune::device_use_test
