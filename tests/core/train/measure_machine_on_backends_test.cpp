// What a machine can do, measured on the backend that the program links, as its workers measure it.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/check_machine.hpp"
#include "core/train/measure_machine.hpp"
#include "core/train/run_experiment.hpp"
#include "tests/support/on_backend.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::measure_machine_on_backends_test {
namespace {

constexpr GroupMessage kQuantised{CollectiveKind::all_to_all, DType::int8, 2, 2};
constexpr GroupMessage kOfNeighbours{CollectiveKind::all_gather, DType::bf16, 2, 1};

Experiment machine(int ranks, DType dtype) {
  Experiment experiment = test::TinyExperiment{.ranks = ranks, .dtype = dtype}.make();
  experiment.settings.memory_limit = Bytes{1} << 20U;  // so messages are small
  experiment.measures_machine = true;
  return experiment;
}

MATCHER(IsARate, "") { return arg > 0 && std::isfinite(arg); }

void expect_complete(const MachineRates& rates) {
  EXPECT_THAT(rates.flops_per_s, IsARate());
  EXPECT_THAT(rates.copy_bytes_per_s, IsARate());
  EXPECT_THAT(rates.launch, IsARate());
  EXPECT_FALSE(rates.matrices.empty());
  for (const MatrixRate& product : rates.matrices) EXPECT_THAT(product.flops_per_s, IsARate());
  for (const CollectiveRate& rate : rates.collectives) EXPECT_THAT(rate.bytes_per_s, IsARate());
  ASSERT_EQ(rates.messages.size(), 2U);
  EXPECT_EQ(rates.messages.front().message, kQuantised);
  EXPECT_THAT(rates.messages.front().rate.bytes_per_s, IsARate());
  EXPECT_EQ(rates.messages.back().message, kOfNeighbours);
}

/// Runs `experiment` on threads, and `expect` on what each rank measured.
template <class Expect>
void measure_on_backend(const Experiment& experiment, const Expect& expect) {
  test::run_on_backend(
      experiment, [&](int, Device& device, Collectives& collectives, Group& group) {
        const Outcome outcome = run_experiment(experiment, device, collectives, group);

        ASSERT_TRUE(std::holds_alternative<Measured>(outcome)) << describe(outcome);
        expect(std::get<Measured>(outcome), device);
        EXPECT_EQ(device.memory().in_use(), 0U);
      });
}

TEST(MeasureMachineOnBackends, MeasuresAllThatRanks4AreAskedForAndLeavesNothing) {
  Experiment experiment = machine(4, DType::bf16);
  ask_for(experiment, {kQuantised, kOfNeighbours});
  measure_on_backend(experiment, [](const Measured& measured, const Device& device) {
    const auto& rates = measured.machine_rates;
    ASSERT_TRUE(rates);
    EXPECT_EQ(rates->overlaps, device.overlaps());
    EXPECT_EQ(rates->dtype, DType::bf16);
    expect_complete(*rates);
  });
}

TEST(MeasureMachineOnBackends, MeasuresTheHostOfRanks2) {
  Experiment experiment = machine(2, DType::bf16);
  experiment.settings.memory_limit = Bytes{16} << 20U;
  ask_for_host(experiment);
  measure_on_backend(experiment, [](const Measured& measured, const Device& device) {
    ASSERT_TRUE(measured.machine_rates);
    const auto& host = measured.machine_rates->host;
    ASSERT_TRUE(host);
    for (const CopyRates& copies : host->copies) {
      EXPECT_THAT(copies.alone.bytes_per_s, IsARate());
      EXPECT_THAT(copies.together.bytes_per_s, IsARate());
    }
    EXPECT_EQ(host->both_ways_bytes_per_s > 0, device.overlaps());
    EXPECT_EQ(host->threads, device.host_threads());
    EXPECT_EQ(host->passes.back().threads, device.host_threads());
    for (const HostPassRate& pass : host->passes) EXPECT_THAT(pass.bytes_per_s, IsARate());
    EXPECT_EQ(device.host_memory().use().total(), 0U);
  });
}

TEST(MeasureMachineOnBackends, ChecksEachOfRanks4AndWhatArrives) {
  Experiment experiment = machine(4, DType::bf16);
  experiment.settings.memory_limit = Bytes{1} << 21U;
  make_preflight(experiment, {});
  measure_on_backend(experiment, [](const Measured& measured, const Device&) {
    ASSERT_TRUE(measured.machine_check);
    for (const RankCheck& rank : measured.machine_check->ranks) {
      EXPECT_THAT(rank.flops_per_s, IsARate());
      EXPECT_THAT(rank.copy_bytes_per_s, IsARate());
      EXPECT_GE(rank.jitter, 0);
    }
  });
}

}  // namespace
}  // namespace dstune::measure_machine_on_backends_test
