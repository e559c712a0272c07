#include "core/device/rates/machine_rates.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::machine_rates_test {
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
  rates.dtype = DType::bf16;
  rates.messages = {{{CollectiveKind::all_to_all, DType::int8, 2, 4}, {1e-6, 1e9 / 3}}};
  rates.host = HostRates{.passes = {{1, 1e9 / 3}}};

  EXPECT_EQ(machine_rates_from_json(to_json(rates)), rates);
}

TEST(MachineRates, OfEarlierVersionsHaveNeitherTypeNorOtherMessages) {
  const MachineRates rates{.flops_per_s = 3};
  json::object older = to_json(rates);
  older.erase("dtype");
  older.erase("messages");

  EXPECT_EQ(machine_rates_from_json(older), rates);
}

TEST(MachineRates, OfEarlierVersionsHaveNotMeasuredTheHost) {
  MachineRates rates{.flops_per_s = 3};
  rates.host = HostRates{};
  json::object older = to_json(rates);
  older.erase("host");

  EXPECT_FALSE(machine_rates_from_json(older).host);
}

TEST(RateOf, AMessageIsItsOwnOrAnotherTypesOrTheWholeGroups) {
  constexpr CollectiveRate kWhole{1, 10};
  constexpr CollectiveRate kPart{2, 20};
  constexpr CollectiveRate kBytes{3, 30};
  MachineRates rates;
  rates.collectives.fill(kWhole);
  rates.messages = {{{CollectiveKind::all_gather, DType::bf16, 2, 1}, kPart},
                    {{CollectiveKind::all_gather, DType::int8, 2, 1}, kBytes}};
  const auto gather = [](DType dtype, int ranks, int spacing) {
    return GroupMessage{CollectiveKind::all_gather, dtype, ranks, spacing};
  };

  EXPECT_EQ(rate_of(rates, gather(DType::bf16, 2, 1)), kPart);
  EXPECT_EQ(rate_of(rates, gather(DType::int8, 2, 1)), kBytes);
  EXPECT_NE(rate_of(rates, gather(DType::fp32, 2, 1)), kWhole);
  EXPECT_EQ(rate_of(rates, gather(DType::bf16, 2, 4)), kWhole);
  EXPECT_EQ(rate_of(rates, gather(DType::bf16, 8, 1)), kWhole);
  EXPECT_EQ(rate_of(rates, {CollectiveKind::reduce, DType::bf16, 2, 1}), kWhole);
}

TEST(RateOf, IsThatOfTheNearestShape) {
  const MachineRates rates{
      .matrices = {
          {64, 768, 768, 1e9}, {64, 3072, 768, 2e9}, {64, 768, 3072, 3e9}, {512, 3072, 768, 4e9}}};

  EXPECT_EQ(rate_of(rates, product(64, 3072, 768, DType::fp32)), 2e9);
  EXPECT_EQ(rate_of(rates, product(64, 768, 3072, DType::bf16)), 3e9);
  EXPECT_EQ(rate_of(rates, product(900, 3072, 768, DType::bf16)), 4e9);
  EXPECT_EQ(rate_of(rates, product(64, 700, 768, DType::fp32)), 1e9);
}

// Micro-batches 1 and 4 were measured; 2 is half-way.
TEST(RateOf, LiesBetweenThoseOfTheShapesOnBothSides) {
  const MachineRates rates{
      .matrices = {{64, 768, 768, 1e9}, {256, 768, 768, 4e9}, {64, 768, 99, 7e9}}};

  EXPECT_NEAR(rate_of(rates, product(128, 768, 768, DType::fp32)), 2e9, 1);
  EXPECT_NEAR(rate_of(rates, product(181, 768, 768, DType::fp32)), 4e9 / std::sqrt(2.0), 1e7);
  EXPECT_EQ(rate_of(rates, product(512, 768, 768, DType::fp32)), 4e9);
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

TEST(MergedRates, KnowTheMessagesThatAllRanksKnow) {
  constexpr GroupMessage kKnown{CollectiveKind::reduce, DType::fp32, 2, 1};
  constexpr GroupMessage kOneRanks{CollectiveKind::reduce, DType::fp32, 4, 1};
  MachineRates one{.flops_per_s = 1};
  one.messages = {{kOneRanks, {1, 1}}, {kKnown, {2, 7}}};
  MachineRates other{.flops_per_s = 1};
  other.messages = {{kKnown, {1, 6}}};

  EXPECT_EQ(merge({one, other}).messages, (std::vector<MessageRate>{{kKnown, {2, 6}}}));
}

/// A machine whose host copies at `bytes_per_s` and has such passes.
MachineRates hosted(double bytes_per_s, std::vector<HostPassRate> passes) {
  MachineRates rates{.flops_per_s = 1};
  rates.host = HostRates{.passes = std::move(passes)};
  for (CopyRates& copies : rates.host->copies) copies = {{1, 2}, {9 / bytes_per_s, bytes_per_s}};
  return rates;
}

TEST(MergedRates, HaveTheSlowestCopiesAndPassesOfTheHost) {
  const auto merged =
      merge({hosted(3, {{1, 5}, {2, 7}}), hosted(9, {{1, 6}, {2, 6}})}).host.value();

  EXPECT_EQ(merged.at(Tier::pageable, Transfer::host_to_device).together, (CopyRate{3, 3}));
  EXPECT_EQ(merged.passes, (std::vector<HostPassRate>{{1, 5}, {2, 6}}));
}

TEST(TypicalRates, OfTheHostAreThoseOfTheGroupsThatMeasuredIt) {
  MachineRates without{.flops_per_s = 1};

  const auto host = typical({without, hosted(1, {{1, 4}}), hosted(9, {{1, 9}})}).host.value();

  EXPECT_DOUBLE_EQ(host.at(Tier::pinned, Transfer::device_to_host).together.bytes_per_s, 3);
  EXPECT_DOUBLE_EQ(host.passes.front().bytes_per_s, 6);
  EXPECT_FALSE(typical({without, without}).host);
}

TEST(TypicalRates, LieBetweenTheGroups) {
  MachineRates one{.flops_per_s = 4, .copy_bytes_per_s = 1, .launch = 1, .matrices = {{kShape, 8}}};
  one.collectives.fill({.latency = 0, .bytes_per_s = 9});
  MachineRates other{
      .flops_per_s = 9, .copy_bytes_per_s = 1, .launch = 4, .matrices = {{kShape, 2}}};
  other.collectives.fill({.latency = 0, .bytes_per_s = 1});

  const MachineRates rates = typical({one, other});

  EXPECT_DOUBLE_EQ(rates.flops_per_s, 6);
  EXPECT_DOUBLE_EQ(rates.launch, 2);
  EXPECT_DOUBLE_EQ(rates.matrices.front().flops_per_s, 4);
  EXPECT_DOUBLE_EQ(rates.at(CollectiveKind::reduce).bytes_per_s, 3);
  EXPECT_EQ(rates.at(CollectiveKind::reduce).latency, 0);
}

}  // namespace
}  // namespace dstune::machine_rates_test
