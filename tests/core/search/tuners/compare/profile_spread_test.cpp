#include "core/search/tuners/compare/profile_spread.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace dstune::profile_spread_test {
namespace {

/// A step of `samples`, with `calls` of an event that takes `seconds` each.
Measured step(Seconds time, int calls, HostEvent event = HostEvent::gradient_hook,
              Seconds seconds = 160e-6, double samples = 1) {
  Measured measured;
  measured.step_time.median = time;
  measured.samples_per_s = samples / time;
  for (int i = 0; i < calls; ++i) measured.ledger.add_host(event, seconds);
  return measured;
}

RunSettings with(std::string_view preset) {
  RunSettings settings;
  settings.host_overhead = host_overhead_preset(preset).value();
  return settings;
}

double spread(const RunSettings& settings, const Measured& a, const Measured& b) {
  return profile_spread(settings, Metric::throughput, a, b);
}

TEST(ProfileSpread, IsNoneOfWhatBothHave) {
  EXPECT_EQ(spread(with(kGlooOverhead), step(0.1, 100), step(0.2, 100)), 0);
}

// 20 hooks of 160 us: twice 3.2 ms more for the faster, half of it less for the slower.
TEST(ProfileSpread, IsOfWhatOneHasMoreOf) {
  EXPECT_NEAR(spread(with(kGlooOverhead), step(0.1, 120), step(0.2, 100)), 0.032, 1e-12);
  EXPECT_NEAR(spread(with(kGlooOverhead), step(0.1, 100), step(0.2, 120)), 0.016, 1e-12);
  EXPECT_EQ(spread(with(kGlooOverhead), step(0.1, 100), step(0.2, 120)),
            spread(with(kGlooOverhead), step(0.2, 120), step(0.1, 100)));
}

// Four times the batch with four times the hooks: as many of them for a sample.
TEST(ProfileSpread, IsForTheSameWork) {
  const Measured small = step(0.1, 100);
  const Measured large = step(0.4, 400, HostEvent::gradient_hook, 160e-6, 4);

  EXPECT_NEAR(spread(with(kGlooOverhead), small, large), 0, 1e-12);
  EXPECT_NEAR(profile_spread(with(kGlooOverhead), Metric::latency, small, large),
              300 * 160e-6 / 2 / 0.1, 1e-12);
}

TEST(ProfileSpread, IsNothingWithoutAProfile) {
  EXPECT_EQ(spread(with(kNoOverhead), step(0.1, 120), step(0.2, 100)), 0);
}

TEST(ProfileSpread, IsOfTheExposedTimeWhereADeviceHidesTheHosts) {
  Measured busy = step(0.1, 100);
  const Measured quiet = step(0.2, 0);
  RunSettings cuda = with(kGlooOverhead);
  cuda.backend = "cuda";
  EXPECT_EQ(spread(cuda, busy, quiet), 0);

  busy.ledger.add_idle(HostEvent::gradient_hook, 4e-3);

  EXPECT_NEAR(spread(cuda, busy, quiet), 0.04, 1e-12);
  EXPECT_NEAR(spread(with(kGlooOverhead), busy, quiet), 0.16, 1e-12);
}

/// What was measured: 10 us of uncertainty of a hook, 100 of a collective.
RunSettings calibrated() {
  RunSettings settings;
  settings.host_overhead.seconds = {160e-6, 450e-6, 3e-3, 200e-6, 20e-6};
  settings.host_overhead.uncertainty = {10e-6, 20e-6, 100e-6, 20e-6, 5e-6};
  return settings;
}

TEST(ProfileSpread, AddsDifferencesOfSeveralEventsInSquares) {
  const auto step_with = [](int hooks, int calls) {
    Measured measured = step(0.1, hooks);
    for (int i = 0; i < calls; ++i) measured.ledger.add_host(HostEvent::collective, 3e-3);
    return measured;
  };

  EXPECT_NEAR(spread(calibrated(), step_with(120, 10), step_with(100, 10)), 20 * 10e-6 / 0.1,
              1e-12);
  EXPECT_NEAR(spread(calibrated(), step_with(130, 6), step_with(100, 10)),
              std::hypot(30 * 10e-6, 4 * 100e-6) / 0.1, 1e-12);
}

/// A step of 0.1 s with two all-gathers of `bytes` among two ranks, which half of them are sent to.
Measured gathering(Bytes bytes, Seconds added, bool pipelined = false) {
  Measured measured = step(0.1, 0);
  for (int i = 0; i < 2; ++i) {
    measured.ledger.add({.kind = CollectiveKind::all_gather,
                         .dtype = DType::bf16,
                         .ranks = 2,
                         .elements = bytes / 2,
                         .bytes = bytes,
                         .added = added,
                         .pipelined = pipelined ? 1U : 0U});
  }
  return measured;
}

// 2 x 30 us of latency, and a tenth of 2 x 5 MB at 0.5 GB/s.
TEST(ProfileSpread, IsOfTheLibrarysTimeWhereItIsWaitedFor) {
  RunSettings settings;
  settings.host_overhead.collectives = {
      {CollectiveKind::all_reduce, DType::fp32, 1, 1, 1e9, 1e9},
      {CollectiveKind::all_gather, DType::fp32, 300e-6, 30e-6, 0.5e9, 0.05e9}};

  EXPECT_NEAR(spread(settings, gathering(10'000'000, 0.02), step(0.1, 0)),
              std::hypot(60e-6, 2e-3) / 0.1, 1e-9);
  EXPECT_NEAR(spread(settings, gathering(10'000'000, 0.02), gathering(20'000'000, 0.04)), 0.02,
              1e-9)
      << "as many calls";
  EXPECT_EQ(spread(settings, gathering(10'000'000, 0), step(0.1, 0)), 0)
      << "the library would have been the faster one";
  EXPECT_NEAR(spread(settings, gathering(10'000'000, 0.02, true), step(0.1, 0)), 0.02, 1e-9)
      << "no latency, only bytes";
}

TEST(ProfileSpread, OfLargeMessagesIsThatOfTheirOwnBandwidth) {
  RunSettings settings;
  settings.host_overhead.collectives = {
      {CollectiveKind::all_gather, DType::fp32, 0, 0, 0.5e9, 0.05e9, 10'000'000, 0.25e9, 0.1e9}};

  EXPECT_NEAR(spread(settings, gathering(10'000'000, 0.02), step(0.1, 0)), 0.02, 1e-9);
  EXPECT_NEAR(spread(settings, gathering(20'000'000, 0.08), step(0.1, 0)), 0.32, 1e-9)
      << "40 % of 80 ms";
}

// The mean of a large message and many small ones is small.
TEST(ProfileSpread, OfALargeMessageAmongSmallOnesIsOfWhatItAdded) {
  RunSettings settings;
  settings.host_overhead.collectives = {
      {CollectiveKind::all_gather, DType::fp32, 0, 0, 0, 0, 10'000'000, 0.25e9, 0.1e9}};
  Measured mixed = gathering(20'000'000, 0.04);
  for (int i = 0; i < 9; ++i) {
    mixed.ledger.add({.kind = CollectiveKind::all_gather,
                      .dtype = DType::bf16,
                      .ranks = 2,
                      .elements = 2,
                      .bytes = 4});
  }

  EXPECT_NEAR(spread(settings, mixed, step(0.1, 0)), 0.32, 1e-9) << "40 % of 80 ms";
}

TEST(ProfileSpread, IsNothingOfWhatHasNoTime) {
  EXPECT_EQ(spread(with(kGlooOverhead), Measured{}, step(0.2, 100)), 0);
}

TEST(HangsOnProfile, WhatIsWithinTheSpreadAndBeyondNoise) {
  const RunSettings settings = with(kGlooOverhead);
  const auto hangs = [&](const Measured& a, const Measured& b) {
    return hangs_on_profile(settings, Metric::throughput, a, b);
  };

  EXPECT_TRUE(hangs(step(0.1, 400), step(0.13, 0))) << "64 % of spread, 30 % apart";
  EXPECT_TRUE(hangs(step(0.13, 0), step(0.1, 400)));
  EXPECT_FALSE(hangs(step(0.1, 400), step(0.2, 0))) << "100 % apart";
  EXPECT_FALSE(hangs(step(0.1, 400), step(0.13, 400))) << "nothing of it in the difference";
}

// 20 hooks are 3.2 ms of 0.1 s; by the preset half to twice, by the calibration 0.2 ms.
TEST(HangsOnProfile, UnderAWideProfileAndNotUnderANarrowOne) {
  const Measured few = step(0.1, 100);
  const Measured many = step(0.1015, 120);

  EXPECT_TRUE(hangs_on_profile(with(kGlooOverhead), Metric::throughput, few, many));
  EXPECT_FALSE(hangs_on_profile(calibrated(), Metric::throughput, few, many));
}

// 5 % at most count as noise, so that 30 % of it do not hide a spread of 64 %.
TEST(HangsOnProfile, NotWhatNoiseAloneMakesATie) {
  Measured noisy = step(0.1, 20);
  noisy.step_time.noise_percent = 30;

  EXPECT_FALSE(hangs_on_profile(with(kGlooOverhead), Metric::throughput, noisy, step(0.102, 0)))
      << "3.2 % of spread";
  EXPECT_TRUE(hangs_on_profile(with(kGlooOverhead), Metric::throughput, noisy, step(0.102, 400)))
      << "32 % of spread";
}

}  // namespace
}  // namespace dstune::profile_spread_test
