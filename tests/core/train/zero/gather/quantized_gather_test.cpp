#include "core/train/zero/gather/quantized_gather.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::quantized_gather_test {
namespace {

constexpr Bytes kLimit = Bytes{1} << 26U;
constexpr int kRanks = 3;

using Lengths = std::vector<std::int64_t>;

float value_of(int rank, std::int64_t index) {
  return std::sin(static_cast<float>(index * 7 + rank * 1000)) * static_cast<float>(rank + 1);
}

std::vector<float> values_of(int rank, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(value_of(rank, i));
  return values;
}

/// `whole` cut into tensors of these lengths.
std::vector<Tensor> shards_of(Tensor whole, const Lengths& lengths) {
  std::vector<Tensor> shards;
  std::int64_t offset = 0;
  for (const std::int64_t length : lengths) {
    shards.push_back(whole.slice(offset, length));
    offset += length;
  }
  return shards;
}

struct Gathered {
  std::vector<float> quantized;
  std::vector<float> exact;
};

/// What rank `rank` gets from a quantised and from a plain gather of the same shards.
Gathered gather_both(int rank, test::ThreadTeam& team, DType dtype, const Lengths& lengths) {
  cpu::CpuDevice device(kLimit);
  test::ThreadCollectives collectives(device, team, rank);
  const std::int64_t own = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const Buffer shards = make_buffer(device, MemoryCategory::parameters, own, dtype);
  device.write(values_of(rank, own), shards.tensor(dtype));
  const QuantizedGather gather(device, collectives, dtype);
  const Buffer plain =
      make_buffer(device, MemoryCategory::parameters, own * collectives.size(), dtype);

  const QuantizedMessage message = gather.launch(shards_of(shards.tensor(dtype), lengths));
  const Buffer result = gather.dequantized(message, MemoryCategory::parameters);
  collectives.all_gather(shards.tensor(dtype), plain.tensor(dtype), Purpose::other);

  Gathered gathered;
  gathered.quantized.resize(static_cast<std::size_t>(own * collectives.size()));
  gathered.exact = gathered.quantized;
  device.read(result.tensor(dtype), gathered.quantized);
  device.read(plain.tensor(dtype), gathered.exact);
  return gathered;
}

TEST(QuantizedGather, EqualsAPlainGatherWithinOneStepOfEachGroup) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const Lengths& lengths : {Lengths{8}, Lengths{8016}, Lengths{100, 20, 24}}) {
      test::run_on_ranks(kRanks, [&](int rank, test::ThreadTeam& team) {
        const Gathered result = gather_both(rank, team, dtype, lengths);

        const auto own = static_cast<std::ptrdiff_t>(result.exact.size() / kRanks);
        const std::ptrdiff_t size = own / weight_groups(own).value();
        for (auto begin = result.exact.begin(); begin != result.exact.end(); begin += size) {
          const float largest = std::abs(*std::max_element(
              begin, begin + size, [](float a, float b) { return std::abs(a) < std::abs(b); }));
          const float rounding = dtype == DType::bf16 ? 0x1p-9F : 0x1p-11F;
          for (auto exact = begin; exact != begin + size; ++exact) {
            const auto index = static_cast<std::size_t>(exact - result.exact.begin());
            ASSERT_NEAR(result.quantized[index], *exact, (1 / 128.0F + 2 * rounding) * largest);
          }
        }
      });
    }
  }
}

TEST(QuantizedGather, GivesAllRanksTheSameBits) {
  std::vector<std::vector<float>> results(kRanks);
  test::run_on_ranks(kRanks, [&](int rank, test::ThreadTeam& team) {
    results[static_cast<std::size_t>(rank)] =
        gather_both(rank, team, DType::bf16, {64, 640}).quantized;
  });

  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

/// The ledger and the peak of temporaries of one gather on 4 ranks, dry.
struct DryGather {
  explicit DryGather(DType dtype, const Lengths& lengths) {
    const std::int64_t own = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const Buffer shards = make_buffer(device, MemoryCategory::parameters, own, dtype);
    const QuantizedGather gather(device, collectives, dtype);
    const StreamScope scope(device, Stream::gather);
    std::optional message = gather.launch(shards_of(shards.tensor(dtype), lengths));
    held = device.memory().use().at(MemoryCategory::temporaries);
    launch_peak = device.memory().peak().categories.at(MemoryCategory::temporaries);
    device.memory().reset_peak();
    const Buffer result = gather.dequantized(*message, MemoryCategory::parameters);
    message.reset();
    wait_peak = device.memory().peak().categories.at(MemoryCategory::temporaries);
    left = device.memory().use().at(MemoryCategory::temporaries);
    result_size = result.size();
  }

  DryDevice device{kLimit};
  DryCollectives collectives{device, 1, 4};
  Bytes held = 0;
  Bytes launch_peak = 0;
  Bytes wait_peak = 0;
  Bytes left = 0;
  Bytes result_size = 0;
};

TEST(QuantizedGather, SendsOneByteAnElementAndOneStepAGroup) {
  const DryGather dry(DType::fp16, {8000, 8000, 8000});  // 24,000 elements: 3 groups

  const auto& lines = dry.device.ledger().collectives();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].purpose, Purpose::parameters);
  EXPECT_EQ(lines[0].dtype, DType::int8);
  EXPECT_EQ(lines[0].calls, 1U);
  EXPECT_EQ(lines[0].bytes, 24'000U * 4);
  EXPECT_EQ(lines[0].wire_bytes, 24'000.0 * 3);
  EXPECT_EQ(lines[1].purpose, Purpose::scales);
  EXPECT_EQ(lines[1].dtype, DType::fp32);
  EXPECT_EQ(lines[1].calls, 1U);
  EXPECT_EQ(lines[1].bytes, 4U * 3 * 4);
  for (const auto& line : lines) {
    EXPECT_EQ(line.kind, CollectiveKind::all_gather);
    EXPECT_EQ(line.stream, Stream::gather);
  }
}

TEST(QuantizedGather, HoldsOnlyTheMessageBetweenItsHalves) {
  constexpr Bytes kOwn = 24'000;
  constexpr Bytes kSteps = 4 * 3;
  for (const auto& [dtype, e] : {std::pair{DType::fp32, Bytes{4}}, {DType::fp16, Bytes{2}}}) {
    const Bytes half = dtype == DType::fp16 ? 0 : 2;
    for (const Lengths& lengths : {Lengths{24'000}, Lengths{16'000, 8000}}) {
      const DryGather dry(dtype, lengths);

      const Bytes together = lengths.size() == 1 ? 0 : e * kOwn;
      const Bytes message = 4 * (kOwn + kSteps);
      EXPECT_EQ(dry.launch_peak, together + half * kOwn + kOwn + kSteps + message);
      EXPECT_EQ(dry.held, message);
      EXPECT_EQ(dry.wait_peak, message + 4 * half * kOwn);
      EXPECT_EQ(dry.left, 0U);
      EXPECT_EQ(dry.result_size, 4 * e * kOwn);
    }
  }
}

TEST(QuantizedGather, CountsItsPasses) {
  const DryGather dry(DType::bf16, {8000, 16'000});

  constexpr Bytes kOwn = 24'000;
  constexpr Bytes kSteps = 4 * 3;
  EXPECT_EQ(dry.device.ledger().passes(),
            (std::vector<PassLine>{
                {MemoryPass::gather_pack, 2, 2 * kOwn, 2 * kOwn},
                {MemoryPass::quantize, 2, (2 + 2) * kOwn, (2 + 1) * kOwn + kSteps},
                {MemoryPass::dequantize, 2, 4 * ((1 + 2) * kOwn + kSteps), 4 * (2 + 2) * kOwn}}));
}

TEST(QuantizedGather, RefusesWhatDeepSpeedCannotGroup) {
  EXPECT_THROW(DryGather(DType::fp16, {12}), QuantizationRefused);
}

}  // namespace
}  // namespace dstune::quantized_gather_test
