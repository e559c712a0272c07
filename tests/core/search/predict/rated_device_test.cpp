#include "core/search/predict/rated_device.hpp"

#include <gtest/gtest.h>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::rated_device_test {
namespace {

constexpr Tensor kHundredFloats{nullptr, 100, DType::fp32};

MachineRates slow_machine(bool overlaps) {
  MachineRates rates{
      .overlaps = overlaps, .flops_per_s = 1000, .copy_bytes_per_s = 400, .launch = 0.5};
  rates.collectives.fill({.latency = 1, .bytes_per_s = 100});
  return rates;
}

TEST(RatedDevice, TellsALaunchFromItsPass) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);

  device.run(FillZero{kHundredFloats});
  device.synchronize();

  EXPECT_EQ(device.time().at(StepPart::launches), 0.5);
  EXPECT_EQ(device.time().at(StepPart::step_passes), 1);
  EXPECT_EQ(device.now(), device.time().total());
}

// 2000 FLOPs, 1200 bytes.
TEST(RatedDevice, TellsAProductsArithmeticFromItsMemory) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);
  const Matrix square{nullptr, 10, 10, DType::fp32, 10};

  device.run(Gemm{.a = square, .b = square, .c = square});
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.time().at(StepPart::product_memory), 3);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::products), 0);
}

TEST(RatedDevice, SpendsTheHostsTime) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);

  device.spend_host_time(2);

  EXPECT_EQ(device.time().at(StepPart::host), 2);
  EXPECT_EQ(device.time().total(), 2);
}

/// The seconds of a copy of 400 bytes to the host and of a pass over them there, 800 bytes.
Seconds time_of_host(const MachineRates& rates) {
  RatedDevice device(rates);
  device.transfer({.from = kHundredFloats, .to = kHundredFloats, .tier = Tier::pageable});
  device.run_on_host(Copy{kHundredFloats, kHundredFloats});
  device.synchronize();
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::step_passes), device.now());
  return device.now();
}

TEST(RatedDevice, TakesTheHostsRatesWhereTheyWereMeasured) {
  for (const bool overlaps : {false, true}) {
    MachineRates rates = slow_machine(overlaps);
    rates.host = HostRates{.passes = {{1, 100}, {4, 200}}, .threads = 4};
    rates.host->at(Tier::pageable, Transfer::device_to_host).together = {2, 80};

    EXPECT_DOUBLE_EQ(time_of_host(rates), 2 + 400.0 / 80 + 800.0 / 200) << overlaps;
  }
}

TEST(RatedDevice, GuessesTheHostsRatesIfTheDeviceIsAnother) {
  EXPECT_NEAR(time_of_host(slow_machine(true)), 10e-6 + 400 / 12e9 + 800 / 25e9, 1e-12);
}

TEST(RatedDevice, TakesItsOwnRatesForAHostThatNobodyMeasuredIfBothAreOne) {
  const MachineRates rates = slow_machine(false);
  RatedDevice device(rates);

  device.transfer({.from = kHundredFloats, .to = kHundredFloats, .tier = Tier::pageable});

  EXPECT_DOUBLE_EQ(device.now(), 0.5 + 800.0 / 400);
}

TEST(RatedDevice, TellsWhatItWaitsForADriveFromAllElse) {
  MachineRates rates = slow_machine(true);
  rates.host = HostRates{.passes = {{1, 400}}, .drive_read = {1, 200}};
  PartFactors factors = kAsRated;
  factors[index_of(StepPart::drive)] = 3;
  RatedDevice device(rates, factors);
  const auto file = device.open_drive_file("/");
  const auto queue = file->make_queue({});
  const DriveTransfer read{.tensor = kHundredFloats};

  device.start_on_drive(*queue, read, TransferPurpose::state);
  device.run_on_host(Copy{kHundredFloats, kHundredFloats});
  device.await_drive(*queue);

  const Seconds pass = 800 / 400.0;
  const Seconds on_drive = 3 * (1 + 400.0 / 200);
  EXPECT_DOUBLE_EQ(device.now(), on_drive);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::step_passes), pass);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::drive), on_drive - pass);
}

TEST(RatedCollectives, TellLatencyFromVolume) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);
  RatedCollectives collectives(device, 0, 4);

  collectives.all_reduce(kHundredFloats, ReduceOp::sum, Purpose::other);
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.time().at(StepPart::messages), 6);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::all_reduce), 6);  // 600 bytes
}

TEST(RatedCollectives, OfAPartHaveItsSize) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);
  RatedCollectives collectives(device, 1, 4);

  collectives.sub_group({0, 1})->all_gather({nullptr, 50, DType::fp32}, kHundredFloats,
                                            Purpose::other);
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.time().at(StepPart::messages), 1);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::all_gather), 2);
}

TEST(RatedCollectives, OfAPartHaveItsOwnRate) {
  MachineRates rates = slow_machine(true);
  rates.messages = {
      {{CollectiveKind::all_gather, DType::fp32, 2, 1}, {.latency = 3, .bytes_per_s = 10}},
      {{CollectiveKind::all_gather, DType::fp32, 2, 2}, {.latency = 5, .bytes_per_s = 1}}};
  RatedDevice device(rates);
  RatedCollectives collectives(device, 1, 4);

  collectives.sub_group({0, 1})->all_gather({nullptr, 50, DType::fp32}, kHundredFloats,
                                            Purpose::other);
  device.synchronize();
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::messages), 3);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::all_gather), 20);

  collectives.sub_group({1, 3})->all_gather({nullptr, 50, DType::fp32}, kHundredFloats,
                                            Purpose::other);
  device.synchronize();
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::messages), 8);
}

// 12 s of all-reduce beside 1.5 s of a pass.
TEST(RatedDevice, CountsOnlyWhatTheStepWaitedFor) {
  const MachineRates rates = slow_machine(true);
  RatedDevice device(rates);
  RatedCollectives collectives(device, 0, 4);

  const Event sum = collectives.all_reduce(kHundredFloats, ReduceOp::sum, Purpose::other);
  device.run(FillZero{kHundredFloats});
  device.await(sum);
  device.synchronize();

  EXPECT_DOUBLE_EQ(device.now(), 12);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::step_passes), 0);
  EXPECT_DOUBLE_EQ(device.time().total(), 12);
}

TEST(RatedDevice, DoesOneThingAtATimeWithoutOverlap) {
  const MachineRates rates = slow_machine(false);
  RatedDevice device(rates);
  RatedCollectives collectives(device, 0, 4);

  collectives.all_reduce(kHundredFloats, ReduceOp::sum, Purpose::other);
  device.run(FillZero{kHundredFloats});

  EXPECT_DOUBLE_EQ(device.now(), 13.5);
  EXPECT_DOUBLE_EQ(device.ledger().communication_time(), 12);
}

// 12 s of its own, of 23 s of the library that will train: 5 s, and 18 s for 600 bytes.
TEST(RatedCollectives, TakeAsLongAsTheLibraryOfTheTraining) {
  const MachineRates rates = slow_machine(false);
  RatedDevice device(rates);
  HostOverhead overhead;
  overhead.collectives = {{.latency = 5, .bus_bytes_per_s = 600.0 / 18}};
  device.set_host_overhead(overhead);
  RatedCollectives collectives(device, 0, 4);

  collectives.all_reduce(kHundredFloats, ReduceOp::sum, Purpose::gradients);

  EXPECT_DOUBLE_EQ(device.now(), 23);
  EXPECT_DOUBLE_EQ(device.time().at(StepPart::host), 11);
  EXPECT_DOUBLE_EQ(device.ledger().added_time(), 11);
}

}  // namespace
}  // namespace dstune::rated_device_test
