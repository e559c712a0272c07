#include "core/search/predict/run_rates.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/tiny_experiment.hpp"

namespace dstune::run_rates_test {
namespace {

/// All of a machine that is `factor` times slower than another.
MachineRates slower(double factor, DType dtype = DType::fp32) {
  MachineRates rates = estimated_rates(test::TinyExperiment{}.make().settings);
  rates.flops_per_s /= factor;
  rates.copy_bytes_per_s /= factor;
  rates.launch *= factor;
  for (CollectiveRate& rate : rates.collectives) {
    rate.latency *= factor;
    rate.bytes_per_s /= factor;
  }
  rates.dtype = dtype;
  return rates;
}

Record machine(const MachineRates& rates, int ranks = 2) {
  Experiment experiment = test::TinyExperiment{.ranks = ranks, .dtype = rates.dtype}.make();
  experiment.measures_machine = true;
  Measured measured;
  measured.machine_rates = rates;
  return {experiment, measured, {}};
}

TEST(RunRates, AreBetweenThoseOfTheGroups) {
  const RunRates rates = run_rates({machine(slower(1)), machine(slower(4))}, 2).value();

  EXPECT_NEAR(rates.of(DType::fp32).launch, slower(2).launch, 1e-12);
  EXPECT_NEAR(rates.spread(), std::log(4) / std::sqrt(2), 1e-9);
}

TEST(RunRates, OfOneGroupAreItsOwn) {
  const RunRates rates = run_rates({machine(slower(1)), machine(slower(4), 4)}, 2).value();

  EXPECT_NEAR(rates.of(DType::fp32).launch, slower(1).launch, 1e-15);
  EXPECT_EQ(rates.spread(), 0);
}

TEST(RunRates, AreThoseOfTheModelsType) {
  const RunRates rates =
      run_rates({machine(slower(1)), machine(slower(3, DType::bf16))}, 2).value();

  EXPECT_NEAR(rates.of(DType::bf16).launch, slower(3).launch, 1e-15);
  EXPECT_NEAR(rates.of(DType::fp32).launch, slower(1).launch, 1e-15);
  EXPECT_EQ(rates.of(DType::fp16), rates.of(DType::fp32)) << "for want of others";
  EXPECT_EQ(rates.spread(), 0) << "types are not groups";
}

TEST(RunRates, OfTheHostCountForEveryType) {
  MachineRates first = slower(1);
  first.host = HostRates{.passes = {{1, 7}}};

  const RunRates rates = run_rates({machine(first), machine(slower(3, DType::bf16))}, 2).value();

  EXPECT_NEAR(rates.host().value().pass_bytes_per_s(1), 7, 1e-9);
  EXPECT_EQ(rates.of(DType::bf16).host, rates.host());
  EXPECT_FALSE(run_rates({machine(slower(1))}, 2).value().host());
}

TEST(RunRates, AreNoneWhereNobodyMeasured) { EXPECT_FALSE(run_rates({machine(slower(1))}, 3)); }

TEST(EstimatedRates, KnowWhoOverlaps) {
  RunSettings settings;
  settings.backend = "cpu";
  EXPECT_FALSE(estimated_rates(settings).overlaps);
  settings.backend = "cuda";
  EXPECT_TRUE(estimated_rates(settings).overlaps);
}

TEST(EstimatedRates, GrowWithTheThreads) {
  RunSettings settings;
  settings.backend = "cpu";
  const double one = estimated_rates(settings).flops_per_s;
  settings.threads_per_rank = 4;
  EXPECT_EQ(estimated_rates(settings).flops_per_s, 4 * one);
}

}  // namespace
}  // namespace dstune::run_rates_test
