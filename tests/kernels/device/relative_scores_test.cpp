#include <algorithm>
#include <cmath>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/relative_positions.hpp"
#include "core/device/operations/rows.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::relative_scores_test {

namespace {

/// What DeBERTa's layers are made of beside eager attention.
class RelativeScoresTest : public DeviceTest {
 protected:
  std::vector<std::int64_t> distances(std::int64_t sequence, std::int64_t buckets,
                                      std::int64_t most) {
    const Buffer out = upload_indices(
        std::vector<std::int64_t>(static_cast<std::size_t>(sequence * sequence), 99));
    device().run(FillDistances{sequence, buckets, most, out.tensor(DType::int64)});
    return download_indices(out);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RelativeScoresTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Made by transformers' make_log_bucket_position().
TEST_P(RelativeScoresTest, DistancesFallIntoBuckets) {
  const auto of_511 = distances(512, 256, 512);
  const std::vector<std::int64_t> expected = {0,   37,  74,  111, 142, 162, 179,
                                              193, 205, 216, 226, 235, 243, 250};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto distance = static_cast<std::int64_t>(i) * 37;
    EXPECT_EQ(of_511[at(distance * 512)], expected[i]) << distance;
    EXPECT_EQ(of_511[at(distance)], -expected[i]) << distance;
  }
  EXPECT_EQ(distances(4, 4, 12),
            (std::vector<std::int64_t>{0, -1, -2, -3, 1, 0, -1, -2, 2, 1, 0, -1, 3, 2, 1, 0}));
  EXPECT_EQ(distances(3, 0, 2), (std::vector<std::int64_t>{0, -1, -2, 1, 0, -1, 2, 1, 0}));
}

TEST_P(RelativeScoresTest, DistancesBecomeRowsOfTheTable) {
  const Buffer in = upload_indices({-5, -2, 0, 1, 2, 7});
  const Buffer out = upload_indices({9, 9, 9, 9, 9, 9});
  const auto shifted = [&](std::int64_t sign) {
    device().run(ShiftDistances{in.tensor(DType::int64), sign, 2, out.tensor(DType::int64)});
    return download_indices(out);
  };

  EXPECT_EQ(shifted(1), (std::vector<std::int64_t>{0, 0, 2, 3, 3, 3}));
  EXPECT_EQ(shifted(-1), (std::vector<std::int64_t>{3, 3, 2, 1, 0, 0}));
}

constexpr std::int64_t kSize = 5;   // s
constexpr std::int64_t kWidth = 4;  // w
constexpr std::int64_t kStacks = 3;
// Equal ones side by side; a column that is in no row, and one that is in one alone.
const std::vector<std::int64_t> kIndex = {3, 3, 1, 1, 0, 3, 1, 0, 0, 0, 1, 1, 1,
                                          1, 1, 0, 1, 3, 3, 3, 0, 0, 1, 1, 1};

TEST_P(RelativeScoresTest, ColumnsAreGatheredByOneIndexForAll) {
  for (const DType dtype : kDTypes) {
    const auto in = random_values(kStacks * kSize * kWidth, dtype, 1);
    const Buffer in_buffer = upload(in, dtype);
    const Buffer index = upload_indices(kIndex);
    const Buffer out = buffer(kStacks * kSize * kSize, dtype);

    device().run(GatherColumns{as_matrix(in_buffer.tensor(dtype), kStacks * kSize, kWidth),
                               index.tensor(DType::int64),
                               as_matrix(out.tensor(dtype), kStacks * kSize, kSize)});

    std::vector<double> expected;
    for (std::int64_t k = 0; k < kStacks * kSize * kSize; ++k) {
      expected.push_back(in[at(k / kSize * kWidth + kIndex[at(k % (kSize * kSize))])]);
    }
    EXPECT_EQ(download(out.tensor(dtype)), expected);
  }
}

TEST_P(RelativeScoresTest, GradientsOfEqualColumnsAreSummed) {
  for (const DType dtype : kDTypes) {
    for (const bool transposed : {false, true}) {
      const auto d_out = random_values(kStacks * kSize * kSize, dtype, 1);
      const Buffer d_out_buffer = upload(d_out, dtype);
      const Buffer index = upload_indices(kIndex);
      const Buffer d_in = upload(random_values(kStacks * kSize * kWidth, dtype, 2), dtype);

      device().run(GatherColumnsBackward{
          as_matrix(d_out_buffer.tensor(dtype), kStacks * kSize, kSize), transposed,
          index.tensor(DType::int64), as_matrix(d_in.tensor(dtype), kStacks * kSize, kWidth)});

      std::vector<double> expected(at(kStacks * kSize * kWidth), 0);
      for (std::int64_t k = 0; k < kStacks * kSize * kSize; ++k) {
        const std::int64_t n = k / (kSize * kSize);
        const std::int64_t i = k / kSize % kSize;
        const std::int64_t j = k % kSize;
        const std::int64_t from = transposed ? (n * kSize + j) * kSize + i : k;
        expected[at((n * kSize + i) * kWidth + kIndex[at(i * kSize + j)])] += d_out[at(from)];
      }
      expect_close(download(d_in.tensor(dtype)), expected, tolerance_of(dtype));
    }
  }
}

TEST_P(RelativeScoresTest, ATransposedMatrixIsAdded) {
  for (const std::int64_t size : {3, 37}) {
    const auto sum = random_values(2 * size * size, DType::fp32, 1);
    const auto other = random_values(2 * size * size, DType::fp32, 2);
    const Buffer inout = upload(sum);
    const Buffer other_buffer = upload(other);

    device().run(AddTransposed{inout.tensor(DType::fp32), other_buffer.tensor(DType::fp32), size});

    auto expected = sum;
    for (std::int64_t k = 0; k < 2 * size * size; ++k) {
      const std::int64_t first = k / (size * size) * size * size;
      expected[at(k)] += other[at(first + k % size * size + k / size % size)];
    }
    expect_close(download(inout.tensor(DType::fp32)), expected, 1e-6);
  }
}

TEST_P(RelativeScoresTest, WhatIsMaskedIsFilled) {
  const AttentionShape shape{.batch = 2, .sequence = 3, .heads = 2, .kv_heads = 2, .head_size = 1};
  for (const DType dtype : kDTypes) {
    const auto in = random_values(2 * 2 * 9, dtype, 1);
    const Buffer in_buffer = upload(in, dtype);
    const Buffer mask(device(), MemoryCategory::temporaries, 18);
    std::vector<std::uint8_t> bytes(18, 0);
    bytes[4] = bytes[9] = bytes[17] = 1;
    GetParam().upload(bytes.data(), mask.data(), bytes.size());
    const Buffer out = buffer(2 * 2 * 9, dtype);
    const auto filled = [&](bool with_lowest) {
      device().run(FillMasked{shape, in_buffer.tensor(dtype), mask.tensor(DType::int8), with_lowest,
                              out.tensor(dtype)});
      return download(out.tensor(dtype));
    };

    const auto lowest = filled(true);
    const auto zero = filled(false);

    for (std::size_t k = 0; k < in.size(); ++k) {
      if (bytes[k / 18 * 9 + k % 9] != 0) {
        EXPECT_LT(lowest[k], -6e4);
        EXPECT_TRUE(std::isfinite(lowest[k]));
        EXPECT_EQ(zero[k], 0);
      } else {
        EXPECT_EQ(lowest[k], in[k]);
        EXPECT_EQ(zero[k], in[k]);
      }
    }
  }
}

TEST_P(RelativeScoresTest, OneRowIsCopiedToMany) {
  const Buffer in = upload({1, 2, 3});
  const Buffer out = buffer(12);

  device().run(
      CopyRows{{in.data(), 4, 3, DType::fp32, 0}, as_matrix(out.tensor(DType::fp32), 4, 3)});

  EXPECT_EQ(download(out.tensor(DType::fp32)),
            (std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}));
}

// Rows of two sequences of four: those beside a sequence's ends are zeros, not the other's.
TEST_P(RelativeScoresTest, NeighboursAreUnfoldedWithinTheirSequence) {
  const std::int64_t rows = 8, cols = 2, width = 3;
  for (const DType dtype : kDTypes) {
    const auto in = random_values(rows * cols, dtype, 1);
    const auto d_out = random_values(rows * cols * width, dtype, 2);
    const Buffer in_buffer = upload(in, dtype);
    const Buffer d_out_buffer = upload(d_out, dtype);
    const Buffer out = buffer(rows * cols * width, dtype);
    const Buffer d_in = buffer(rows * cols, dtype);

    device().run(Unfold{as_matrix(in_buffer.tensor(dtype), rows, cols), 4,
                        as_matrix(out.tensor(dtype), rows, cols * width)});
    device().run(Fold{as_matrix(d_out_buffer.tensor(dtype), rows, cols * width), 4,
                      as_matrix(d_in.tensor(dtype), rows, cols)});

    std::vector<double> expected;
    std::vector<double> gradient(at(rows * cols), 0);
    for (std::int64_t k = 0; k < rows * cols * width; ++k) {
      const std::int64_t row = k / (cols * width);
      const std::int64_t from = row + k % width - 1;
      const bool inside = from >= 0 && from / 4 == row / 4 && from < rows;
      const std::int64_t element = from * cols + k / width % cols;
      expected.push_back(inside ? in[at(element)] : 0);
      if (inside) gradient[at(element)] += d_out[at(k)];
    }
    EXPECT_EQ(download(out.tensor(dtype)), expected);
    expect_close(download(d_in.tensor(dtype)), gradient, tolerance_of(dtype));
  }
}

}  // namespace

}  // namespace dstune::testing::relative_scores_test
