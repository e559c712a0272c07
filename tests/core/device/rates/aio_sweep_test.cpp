#include "core/device/rates/aio_sweep.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::aio_sweep_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kOperation = 65536 * kMiB;  // no queue takes all of it

/// DeepSpeed's grid.
std::vector<AioSettings> grid() {
  std::vector<AioSettings> points;
  for (const Bytes block : {kMiB, 8 * kMiB}) {
    for (const int depth : {32, 128}) {
      for (const int threads : {1, 2, 4, 8}) {
        for (int bits = 0; bits < 4; ++bits) {
          points.push_back({block, depth, threads, (bits & 1) != 0, (bits & 2) != 0});
        }
      }
    }
  }
  return points;
}

int steps_between(int threads, int others) {
  int steps = 0;
  for (int low = std::min(threads, others); low < std::max(threads, others); low *= 2) ++steps;
  return steps;
}

/// A drive that is fastest at `peak`, and a tenth slower for each knob (each doubling of threads)
/// that has another value.
double rate_near(const AioSettings& peak, const AioSettings& point) {
  double rate = 1e9;
  int wrong = steps_between(peak.intra_op_parallelism, point.intra_op_parallelism);
  wrong += peak.block_size != point.block_size ? 1 : 0;
  wrong += peak.queue_depth != point.queue_depth ? 1 : 0;
  wrong += peak.single_submit != point.single_submit ? 1 : 0;
  wrong += peak.overlap_events != point.overlap_events ? 1 : 0;
  for (; wrong > 0; --wrong) rate *= 0.9;
  return rate;
}

/// The different points among what was measured.
std::size_t count_different(std::vector<AioSettings> measured) {
  std::vector<AioSettings> different;
  for (const AioSettings& each : measured) {
    if (std::find(different.begin(), different.end(), each) == different.end()) {
      different.push_back(each);
    }
  }
  return different.size();
}

TEST(HalveAioGrid, FindsThePeakOfEveryDriveWithSevenPoints) {
  for (const AioSettings& peak : grid()) {
    std::vector<AioSettings> measured;

    const auto choice = halve_aio_grid(
        [&](const AioSettings& point) {
          measured.push_back(point);
          return std::optional(rate_near(peak, point));
        },
        kOperation, 2);

    EXPECT_EQ(choice.best, peak);
    EXPECT_TRUE(choice.is_complete);
    EXPECT_EQ(choice.alike, std::vector<std::string>{});
    EXPECT_EQ(measured.size(), 6U * 2 * 2);
    EXPECT_EQ(count_different(measured), 7U);
  }
}

TEST(HalveAioGrid, TakesTheLeastOfAMachineThatIsAlwaysAsFast) {
  const auto choice =
      halve_aio_grid([](const AioSettings&) { return std::optional(1e9); }, kOperation, 1);

  EXPECT_EQ(choice.best, (AioSettings{.block_size = kMiB, .queue_depth = 32}));
}

TEST(HalveAioGrid, TheSidesTakeTurns) {
  std::vector<int> threads;

  halve_aio_grid(
      [&](const AioSettings& point) -> std::optional<double> {
        threads.push_back(point.intra_op_parallelism);
        if (threads.size() == 5) return std::nullopt;
        return 1e9;
      },
      kOperation, 2);

  EXPECT_EQ(threads, (std::vector{2, 4, 4, 2, 1}));
}

TEST(HalveAioGrid, DoesNotMeasureWhatAnOperationCannotTell) {
  std::vector<AioSettings> measured;

  const auto choice = halve_aio_grid(
      [&](const AioSettings& point) {
        measured.push_back(point);
        return std::optional(1e9);
      },
      32 * kMiB, 1);

  EXPECT_EQ(choice.alike, (std::vector<std::string>{"queue_depth 128", "overlap_events false"}));
  EXPECT_EQ(choice.best, (AioSettings{.block_size = kMiB, .queue_depth = 32}));
  for (const AioSettings& each : measured) {
    EXPECT_EQ(each.queue_depth, 32);
    EXPECT_TRUE(each.overlap_events);
  }
}

TEST(HalveAioGrid, KeepsWhatItHadWhenNoMoreCanBeMeasured) {
  int left = 5;
  const AioSettings peak{.block_size = 8 * kMiB, .queue_depth = 128, .intra_op_parallelism = 8};

  const auto choice = halve_aio_grid(
      [&](const AioSettings& point) -> std::optional<double> {
        if (left-- == 0) return std::nullopt;
        return rate_near(peak, point);
      },
      kOperation, 1);

  EXPECT_FALSE(choice.is_complete);
  EXPECT_EQ(choice.best, (AioSettings{.queue_depth = 32, .intra_op_parallelism = 8}));
}

TEST(MeanRate, IsAllBytesInAllOfTheTime) {
  EXPECT_DOUBLE_EQ(mean_rate({1e9, 3e9}), 1.5e9);
  EXPECT_EQ(mean_rate({}), 0);
  EXPECT_EQ(mean_rate({1e9, 0}), 0);
}

TEST(BestForBoth, IsFastForReadsAndWritesTogether) {
  const AioSettings reader{.queue_depth = 32};
  const AioSettings writer{.queue_depth = 128};
  const AioSettings untried{.queue_depth = 64};
  const std::vector<AioPoint> points = {
      {reader, {4e9}, {1e9}}, {writer, {2e9}, {2e9}}, {untried, {9e9}, {}}};

  EXPECT_EQ(best_for_both(points, {reader, writer, untried}), writer);
  EXPECT_EQ(best_for_both(points, {untried, AioSettings{}}), std::nullopt);
}

TEST(BestForBoth, KeepsTheFirstOfATie) {
  const AioSettings first{.queue_depth = 8};
  const AioSettings second{.queue_depth = 128};

  EXPECT_EQ(best_for_both({{first, {1e9}, {1e9}}, {second, {1.04e9}, {1.04e9}}}, {first, second}),
            first);
  EXPECT_EQ(best_for_both({{first, {1e9}, {1e9}}, {second, {1.06e9}, {1.06e9}}}, {first, second}),
            second);
}

TEST(AioSustained, SlowsDownIfTheSecondWindowIsAQuarterSlower) {
  EXPECT_TRUE((AioSustained{.first_write = 4e9, .second_write = 2.9e9}).slows_down());
  EXPECT_FALSE((AioSustained{.first_write = 4e9, .second_write = 3.1e9}).slows_down());
  EXPECT_FALSE((AioSustained{.first_write = 4e9}).slows_down());
}

}  // namespace
}  // namespace dstune::aio_sweep_test
