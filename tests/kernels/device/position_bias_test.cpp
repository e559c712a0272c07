#include <array>
#include <cmath>
#include <limits>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/device/scalar.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::position_bias_test {

namespace {

/// What T5 has beside what others have.
class PositionBiasTest : public DeviceTest {
 protected:
  std::vector<double> clamped(const std::vector<double>& in, std::vector<double>* gradient);
};
INSTANTIATE_TEST_SUITE_P(Devices, PositionBiasTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr ScoreShape kShape{.batch = 3, .heads = 2, .queries = 5, .keys = 4};

std::size_t stacked(std::int64_t head, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>((head * kShape.queries + i) * kShape.keys + j);
}
std::size_t unstacked(std::int64_t head, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>((i * kShape.keys + j) * kShape.heads + head);
}

/// f(head, i, j)
template <class F>
void for_pairs(F f) {
  for (std::int64_t head = 0; head < kShape.heads; ++head) {
    for (std::int64_t i = 0; i < kShape.queries; ++i) {
      for (std::int64_t j = 0; j < kShape.keys; ++j) f(head, i, j);
    }
  }
}

// As T5Attention._relative_position_bucket of transformers 5.23 says.
TEST_P(PositionBiasTest, BucketsAreThoseOfT5) {
  constexpr std::array<std::int64_t, 16> kAhead = {-200, -128, -127, -64, -32, -16, -15, -8,
                                                   -1,   0,    1,    7,   12,  16,  64,  128};
  struct Case {
    bool bidirectional;
    std::int64_t buckets;
    std::int64_t max_distance;
    std::array<std::int64_t, 16> expected;
  };
  constexpr std::array<Case, 3> kCases = {{
      {true, 32, 128, {15, 15, 15, 14, 12, 10, 9, 8, 1, 0, 17, 23, 25, 26, 30, 31}},
      {false, 32, 128, {31, 31, 31, 26, 21, 16, 15, 8, 1, 0, 0, 0, 0, 0, 0, 0}},
      {true, 8, 10, {3, 3, 3, 3, 3, 3, 3, 3, 1, 0, 5, 7, 7, 7, 7, 7}},
  }};
  constexpr std::int64_t kQueries = 201;
  constexpr std::int64_t kKeys = 140;
  for (const Case& each : kCases) {
    const Buffer out = buffer(kQueries * kKeys, DType::int64);

    device().run(PositionBuckets{.queries = kQueries,
                                 .keys = kKeys,
                                 .bidirectional = each.bidirectional,
                                 .buckets = each.buckets,
                                 .max_distance = each.max_distance,
                                 .out = out.tensor(DType::int64)});

    const auto actual = download_indices(out);
    for (std::size_t at = 0; at < kAhead.size(); ++at) {
      const std::int64_t query = kAhead[at] < 0 ? -kAhead[at] : 0;
      const std::int64_t key = query + kAhead[at];
      EXPECT_EQ(actual[static_cast<std::size_t>(query * kKeys + key)], each.expected[at])
          << kAhead[at] << " of " << each.buckets;
    }
  }
}

TEST_P(PositionBiasTest, BiasesAreStackedByHeadsAndHideWhatIsAhead) {
  for (const DType dtype : kDTypes) {
    const auto bias = random_values(kShape.of_one(), dtype, 1);
    const Buffer in = upload(bias, dtype);
    const Buffer all = buffer(kShape.of_one(), dtype);
    const Buffer causal = buffer(kShape.of_one(), dtype);

    device().run(StackBias{.shape = kShape, .bias = in.tensor(dtype), .out = all.tensor(dtype)});
    device().run(StackBias{
        .shape = kShape, .bias = in.tensor(dtype), .causal = true, .out = causal.tensor(dtype)});

    const auto seen = download(all.tensor(dtype));
    const auto hidden = download(causal.tensor(dtype));
    for_pairs([&](std::int64_t head, std::int64_t i, std::int64_t j) {
      const double value = bias[unstacked(head, i, j)];
      EXPECT_EQ(seen[stacked(head, i, j)], value);
      if (j > i) {
        EXPECT_LT(hidden[stacked(head, i, j)], -65000);
        EXPECT_TRUE(std::isfinite(hidden[stacked(head, i, j)]));
      } else {
        EXPECT_EQ(hidden[stacked(head, i, j)], value);
      }
    });
  }
}

TEST_P(PositionBiasTest, EverySequenceGetsTheBiasOfEitherLayout) {
  for (const DType dtype : kDTypes) {
    for (const bool by_heads : {false, true}) {
      const auto scores = random_values(kShape.count(), dtype, 1);
      const auto bias = random_values(kShape.of_one(), dtype, 2);
      const Buffer in = upload(scores, dtype);
      const Buffer bias_buffer = upload(bias, dtype);

      device().run(AddScoreBias{.shape = kShape,
                                .scores = in.tensor(dtype),
                                .bias = bias_buffer.tensor(dtype),
                                .stacked = by_heads,
                                .out = in.tensor(dtype)});

      auto expected = scores;
      for_pairs([&](std::int64_t head, std::int64_t i, std::int64_t j) {
        for (std::int64_t b = 0; b < kShape.batch; ++b) {
          double& sum =
              expected[static_cast<std::size_t>(b * kShape.of_one()) + stacked(head, i, j)];
          sum = rounded(sum + bias[by_heads ? stacked(head, i, j) : unstacked(head, i, j)], dtype);
        }
      });
      EXPECT_EQ(download(in.tensor(dtype)), expected);
    }
  }
}

TEST_P(PositionBiasTest, TheGradientIsTheSumOverTheBatchAndOverLayers) {
  for (const DType dtype : kDTypes) {
    const auto d_scores = random_values(kShape.count(), dtype, 1);
    const Buffer in = upload(d_scores, dtype);
    const Buffer out = upload(random_values(kShape.of_one(), dtype, 2), dtype);
    const auto add = [&](bool adds) {
      device().run(ScoreBiasGradient{.shape = kShape,
                                     .d_scores = in.tensor(dtype),
                                     .adds = adds,
                                     .d_bias = out.tensor(dtype)});
    };

    add(false);
    add(true);

    std::vector<double> expected(static_cast<std::size_t>(kShape.of_one()));
    for_pairs([&](std::int64_t head, std::int64_t i, std::int64_t j) {
      for (std::int64_t b = 0; b < kShape.batch; ++b) {
        expected[unstacked(head, i, j)] +=
            2 * d_scores[static_cast<std::size_t>(b * kShape.of_one()) + stacked(head, i, j)];
      }
    });
    expect_close(download(out.tensor(dtype)), expected, 2 * tolerance_of(dtype));
  }
}

std::vector<double> PositionBiasTest::clamped(const std::vector<double>& in,
                                              std::vector<double>* gradient) {
  constexpr DType kType = DType::fp16;
  const auto count = static_cast<std::int64_t>(in.size());
  const Buffer x = upload(in, kType);
  const Buffer out = buffer(count, kType);
  const Buffer d = upload(std::vector<double>(in.size(), 1), kType);
  const Scalar flag(device(), DType::uint8);
  flag.set_zero();
  device().run(FindInfOrNan{x.tensor(kType), flag.tensor()});

  device().run(Clamp{.in = x.tensor(kType), .flag = flag.tensor(), .out = out.tensor(kType)});
  device().run(ClampBackward{.d_out = d.tensor(kType),
                             .in = x.tensor(kType),
                             .flag = flag.tensor(),
                             .d_in = d.tensor(kType)});

  *gradient = download(d.tensor(kType));
  return download(out.tensor(kType));
}

TEST_P(PositionBiasTest, LargeNumbersAreClampedWhereOneIsInfinite) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> gradient;

  EXPECT_EQ(clamped({65504, -65504, 1}, &gradient), (std::vector<double>{65504, -65504, 1}));
  EXPECT_EQ(gradient, (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(clamped({kInfinity, -65504, 64512, 1}, &gradient),
            (std::vector<double>{64512, -64512, 64512, 1}));
  EXPECT_EQ(gradient, (std::vector<double>{0, 0, 1, 1}));
}

TEST_P(PositionBiasTest, ADecoderReadsItsLabelsOneLater) {
  const Buffer labels = upload_indices({5, 6, 7, 8, 9, 10});
  const Buffer out = buffer(6, DType::int64);

  device().run(ShiftTokens{.labels = labels.tensor(DType::int64),
                           .sequence = 3,
                           .start = 2,
                           .out = out.tensor(DType::int64)});

  EXPECT_EQ(download_indices(out), (std::vector<std::int64_t>{2, 5, 6, 2, 8, 9}));
}

}  // namespace

}  // namespace dstune::testing::position_bias_test
