#include "core/train/zero/reduction/quantized_reduce.hpp"

#include <cmath>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/thread_group.hpp"

namespace dstune::quantized_reduce_test {
namespace {

constexpr Bytes kLimit = Bytes{1} << 26U;
constexpr std::int64_t kRows = 24;
constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kNumel = kRows * kColumns;

struct Shape {
  int nodes;
  int devices;
  int ranks() const { return nodes * devices; }
};

constexpr Shape kShapes[] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {2, 3}, {3, 2}, {4, 2}};

using ValueOf = std::function<float(int rank, std::int64_t index)>;

/// The parts of the average that the ranks of `shape` get, one after the other.
std::vector<float> average(const Shape& shape, DType dtype, const ValueOf& value_of) {
  std::deque<test::ThreadTeam> nodes;
  std::deque<test::ThreadTeam> places;
  for (int node = 0; node < shape.nodes; ++node) nodes.emplace_back(shape.devices);
  for (int device = 0; device < shape.devices; ++device) places.emplace_back(shape.nodes);
  std::vector<float> result(kNumel);
  test::run_on_ranks(shape.ranks(), [&](int rank, test::ThreadTeam&) {
    const int node = rank / shape.devices;
    const int place = rank % shape.devices;
    cpu::CpuDevice device(kLimit);
    test::ThreadCollectives intra(device, nodes[static_cast<std::size_t>(node)], place);
    test::ThreadCollectives inter(device, places[static_cast<std::size_t>(place)], node);
    const Buffer gradient = make_buffer(device, MemoryCategory::gradients, kNumel, dtype);
    std::vector<float> values;
    for (std::int64_t i = 0; i < kNumel; ++i) values.push_back(value_of(rank, i));
    device.write(values, gradient.tensor(dtype));
    const QuantizedReduce reduce(device, intra, inter);

    const Buffer part =
        reduce.average(gradient.tensor(dtype), gradient_groups({kRows, kColumns}, shape.ranks()));

    const auto count = static_cast<std::size_t>(kNumel / shape.ranks());
    device.read(part.tensor(dtype),
                std::span(result).subspan(static_cast<std::size_t>(rank) * count, count));
  });
  return result;
}

// Every rank's values are at most 1: a step of the first hop is 1/8 and of the second, whose values
// are sums over a node, L/8. An error is at most one step (at the top of a group), so the average
// of n nodes of L ranks errs by at most (n L / 8 + n L / 8) / n L.
float wave(int rank, std::int64_t index) {
  return std::sin(static_cast<float>(index * 3 + rank * 101));
}

TEST(QuantizedReduce, AveragesWithinTheStepsOfItsTwoHops) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : {DType::fp32, DType::fp16}) {
      const auto result = average(shape, dtype, wave);

      double squares = 0;
      for (std::int64_t i = 0; i < kNumel; ++i) {
        double exact = 0;
        for (int rank = 0; rank < shape.ranks(); ++rank) exact += wave(rank, i);
        const double error = result[static_cast<std::size_t>(i)] - exact / shape.ranks();
        ASSERT_LE(std::abs(error), 2 / 8.0 + 1e-3)
            << i << " of " << shape.nodes << " x " << shape.devices;
        squares += error * error;
      }
      EXPECT_LT(std::sqrt(squares / kNumel), 0.06) << shape.nodes << " x " << shape.devices;
    }
  }
}

TEST(QuantizedReduce, IsExactForValuesThatAreWholeSteps) {
  const auto whole = [](int, std::int64_t index) {
    return static_cast<float>(index % 8 == 0 ? -8 : index % 13 - 6);
  };

  for (const Shape& shape : kShapes) {
    const auto result = average(shape, DType::fp16, whole);

    for (std::int64_t i = 0; i < kNumel; ++i) {
      ASSERT_EQ(result[static_cast<std::size_t>(i)], whole(0, i))
          << i << " of " << shape.nodes << " x " << shape.devices;
    }
  }
}

/// One average of a (64, 48) gradient on 2 nodes of 4, dry.
struct DryAverage {
  DryAverage() {
    const Buffer gradient = make_buffer(device, MemoryCategory::gradients, 64 * 48, DType::fp16);
    const QuantizedReduce reduce(device, intra, inter);
    const Buffer part = reduce.average(gradient.tensor(DType::fp16), gradient_groups({64, 48}, 8));
    part_size = part.size();
    peak = device.memory().peak().categories.at(MemoryCategory::temporaries);
  }

  DryDevice device{kLimit};
  DryCollectives intra{device, 1, 4};
  DryCollectives inter{device, 0, 2};
  Bytes part_size = 0;
  Bytes peak = 0;
};

TEST(QuantizedReduce, ExchangesHalfAByteAnElementThenAPartOfThatBetweenNodes) {
  const DryAverage dry;

  const auto& lines = dry.device.ledger().collectives();
  ASSERT_EQ(lines.size(), 4U);
  const auto expect = [&](std::size_t index, int ranks, DType dtype, Bytes bytes) {
    EXPECT_EQ(lines[index].kind, CollectiveKind::all_to_all);
    EXPECT_EQ(lines[index].purpose, dtype == DType::int8 ? Purpose::gradients : Purpose::scales);
    EXPECT_EQ(lines[index].ranks, ranks);
    EXPECT_EQ(lines[index].dtype, dtype);
    EXPECT_EQ(lines[index].calls, 1U);
    EXPECT_EQ(lines[index].bytes, bytes);
    EXPECT_EQ(lines[index].wire_bytes, static_cast<double>(bytes) * (ranks - 1) / ranks);
  };
  expect(0, 4, DType::int8, 64 * 48 / 2);
  expect(1, 4, DType::fp32, 4 * 64);
  expect(2, 2, DType::int8, 64 * 48 / 2 / 4);
  expect(3, 2, DType::fp32, 4 * 64 / 4);
}

TEST(QuantizedReduce, HoldsWhatIsSentAndReceivedOfBothHopsAndTheNodesParts) {
  const DryAverage dry;

  constexpr Bytes kHop = 64 * 48 / 2 + 4 * 64;
  constexpr Bytes kParts = 2 * 64 * 48 / 4;
  EXPECT_EQ(dry.part_size, 2U * 64 * 48 / 8);
  EXPECT_EQ(dry.peak, 2 * kHop + 2 * kHop / 4 + kParts + dry.part_size);
}

}  // namespace
}  // namespace dstune::quantized_reduce_test
