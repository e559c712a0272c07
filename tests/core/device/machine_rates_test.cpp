#include "core/device/machine_rates.hpp"

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune {
namespace {

constexpr MatrixShape kShape{.rows = 1, .cols = 2, .inner = 3};

Work product(std::int64_t rows, std::int64_t cols, std::int64_t inner, DType dtype) {
  return work_of(Gemm{.a = {nullptr, rows, inner, dtype, inner},
                      .b = {nullptr, inner, cols, dtype, cols},
                      .c = {nullptr, rows, cols, dtype, cols}});
}

TEST(MachineRates, SurviveTheJournal) {
  MachineRates rates{.overlaps = true,
                     .flops_per_s = 1.0 / 3,
                     .copy_bytes_per_s = 2e9,
                     .launch = 1e-6,
                     .matrices = {{kShape, 0.1}}};
  rates.at(CollectiveKind::reduce) = {.latency = 1e-5, .bytes_per_s = 1e9 / 7};

  EXPECT_EQ(machine_rates_from_json(to_json(rates)), rates);
}

TEST(RateOf, IsThatOfTheNearestShape) {
  const MachineRates rates{
      .matrices = {
          {64, 768, 768, 1e9}, {64, 3072, 768, 2e9}, {64, 768, 3072, 3e9}, {512, 3072, 768, 4e9}}};

  EXPECT_EQ(rate_of(rates, product(64, 3072, 768, DType::fp32)), 2e9);
  EXPECT_EQ(rate_of(rates, product(64, 768, 3072, DType::bf16)), 3e9);
  EXPECT_EQ(rate_of(rates, product(400, 3072, 768, DType::bf16)), 4e9);
  EXPECT_EQ(rate_of(rates, product(64, 700, 768, DType::fp32)), 1e9);
}

TEST(RateOf, IsTheSameForAllWhereNoneWasMeasured) {
  EXPECT_EQ(rate_of({.flops_per_s = 7}, product(1, 2, 3, DType::fp32)), 7);
}

TEST(RingSteps, AreTwiceAroundForAnAllReduce) {
  EXPECT_EQ(ring_steps(CollectiveKind::all_reduce, 4), 6);
  EXPECT_EQ(ring_steps(CollectiveKind::all_gather, 4), 3);
  EXPECT_EQ(ring_steps(CollectiveKind::broadcast, 1), 0);
}

TEST(MergedRates, AreTheSlowestRanks) {
  MachineRates one{.flops_per_s = 5, .copy_bytes_per_s = 3, .launch = 1, .matrices = {{kShape, 4}}};
  one.collectives.fill({.latency = 2, .bytes_per_s = 7});
  MachineRates other{.flops_per_s = 6,
                     .copy_bytes_per_s = 2,
                     .launch = 2,
                     .matrices = {{kShape, 3}, {{1, 1, 1}, 1}}};
  other.collectives.fill({.latency = 1, .bytes_per_s = 6});

  const MachineRates merged = merge({one, other});

  EXPECT_EQ(merged.flops_per_s, 5);
  EXPECT_EQ(merged.copy_bytes_per_s, 2);
  EXPECT_EQ(merged.launch, 2);
  EXPECT_EQ(merged.matrices, (std::vector<MatrixRate>{{kShape, 3}}));
  EXPECT_EQ(merged.at(CollectiveKind::broadcast), (CollectiveRate{2, 6}));
  EXPECT_EQ(merge({other, one}), merged);
}

}  // namespace
}  // namespace dstune
