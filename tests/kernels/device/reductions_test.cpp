#include <limits>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "tests/kernels/device/device_test.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing::reductions_test {

namespace {

class ReductionsTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ReductionsTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(ReductionsTest, SumOfSquaresIsAccumulatedInDouble) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto values = random_values(length, dtype, 1);
      const Buffer x = upload(values, dtype);

      const double sum = test::sum_of_squares(device(), x.tensor(dtype));

      EXPECT_NEAR(sum, dot(values, values), 1e-7 * sum);
    }
  }
}

TEST_P(ReductionsTest, SquaresAreAddedToWhatIsThere) {
  const Buffer x = upload({3, 4}, DType::fp32);
  const Scalar sum(device());
  sum.set_zero();

  device().run(AddSquares{x.tensor(DType::fp32), sum.tensor()});
  device().run(AddSquares{x.tensor(DType::fp32), sum.tensor()});

  EXPECT_EQ(test::read(device(), sum), 50);
}

TEST_P(ReductionsTest, AFlagStaysSet) {
  const Buffer infinite = upload({std::numeric_limits<double>::infinity()}, DType::fp32);
  const Buffer finite = upload({1}, DType::fp32);
  const Scalar flag(device(), DType::uint8);
  flag.set_zero();

  device().run(FindInfOrNan{infinite.tensor(DType::fp32), flag.tensor()});
  device().run(FindInfOrNan{finite.tensor(DType::fp32), flag.tensor()});

  EXPECT_EQ(test::read(device(), flag), 1);
}

struct Clipping {
  float squares;
  double clipping;
  double loss_scale;
  double factor;
};

TEST_P(ReductionsTest, FactorUndoesTheLossScaleAndClips) {
  const Clipping cases[] = {{16, 0, 1, 1},            // no clipping
                            {16, 5, 1, 1},            // below the limit
                            {16, 2, 1, 0.5},          // a norm of 4
                            {16, 0, 8, 0.125},        // the loss scale alone
                            {16, 0.25, 8, 1.0 / 16},  // a norm of 4 / 8
                            {0, 1, 1, 1}};
  for (const Clipping& clipping : cases) {
    const Scalar squares(device());
    const Scalar factor(device());
    device().write({&clipping.squares, 1}, squares.tensor());

    device().run(ClipFactor{.squares = squares.tensor(),
                            .clipping = clipping.clipping,
                            .loss_scale = clipping.loss_scale,
                            .factor = factor.tensor()});

    EXPECT_NEAR(test::read(device(), factor), clipping.factor, 5e-6 * clipping.factor);
  }
}

TEST_P(ReductionsTest, ScalesByANumberOnTheDevice) {
  const Buffer x = upload({1, -2, 3}, DType::fp32);
  const Buffer factor = upload({0.5}, DType::fp32);

  device().run(ScaleBy{x.tensor(DType::fp32), factor.tensor(DType::fp32)});

  EXPECT_EQ(download(x.tensor(DType::fp32)), (std::vector<double>{0.5, -1, 1.5}));
}

TEST_P(ReductionsTest, ANumberComesToTheHostWithItsWaitAndItsBytes) {
  const Buffer x = upload({2.5}, DType::fp32);

  EXPECT_EQ(device().read_scalar(x.tensor(DType::fp32), HostSync::norm), 2.5);

  ASSERT_EQ(device().ledger().syncs().size(), 1U);
  EXPECT_EQ(device().ledger().syncs()[0].reason, HostSync::norm);
  ASSERT_EQ(device().ledger().transfers().size(), 1U);
  EXPECT_EQ(device().ledger().transfers()[0].bytes, 4U);
}

TEST_P(ReductionsTest, SumOfNothingIsZero) {
  EXPECT_EQ(test::sum_of_squares(device(), Tensor{}), 0);
  EXPECT_FALSE(test::has_inf_or_nan(device(), Tensor{}));
}

TEST_P(ReductionsTest, InfinityAndNanAreFoundAtEveryPosition) {
  constexpr std::int64_t kLength = 37;
  const double specials[] = {std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
  for (const DType dtype : kDTypes) {
    for (const double special : specials) {
      for (std::size_t position = 0; position < kLength; ++position) {
        auto values = random_values(kLength, dtype, 2);
        values[position] = special;
        const Buffer x = upload(values, dtype);

        EXPECT_TRUE(test::has_inf_or_nan(device(), x.tensor(dtype))) << position;
      }
    }
  }
}

// More elements than blocks take at once, and more blocks than a block has threads.
TEST_P(ReductionsTest, NothingIsLeftOutOfALongTensor) {
  constexpr std::int64_t kLength = 2200001;
  const Buffer x = buffer(kLength + 1);
  const Tensor slice = x.tensor(DType::fp32).slice(1, kLength);
  device().run(FillConstant{slice, 1});

  EXPECT_EQ(test::sum_of_squares(device(), slice), static_cast<double>(kLength));

  device().run(FillConstant{slice.slice(kLength - 1, 1), std::numeric_limits<double>::infinity()});

  EXPECT_TRUE(test::has_inf_or_nan(device(), slice));
}

TEST_P(ReductionsTest, OneNanAmongManyIsFound) {
  constexpr std::int64_t kLength = 20011;
  for (const DType dtype : kDTypes) {
    for (const std::size_t position : {0, 1023, 4095, 4096, 8192, 16383, 20007, 20008, 20010}) {
      std::vector<double> values(kLength, 1);
      values[position] = std::numeric_limits<double>::quiet_NaN();
      const Buffer x = upload(values, dtype);

      EXPECT_TRUE(test::has_inf_or_nan(device(), x.tensor(dtype))) << position;
    }
  }
}

TEST_P(ReductionsTest, LargestFiniteNumbersAreNeitherInfinityNorNan) {
  const Buffer single = upload(
      std::vector<double>(19, static_cast<double>(std::numeric_limits<float>::max())), DType::fp32);
  const Buffer half = upload(std::vector<double>(19, -65504), DType::fp16);
  const Buffer brain = upload(std::vector<double>(19, 0x1.fep127), DType::bf16);

  EXPECT_FALSE(test::has_inf_or_nan(device(), single.tensor(DType::fp32)));
  EXPECT_FALSE(test::has_inf_or_nan(device(), half.tensor(DType::fp16)));
  EXPECT_FALSE(test::has_inf_or_nan(device(), brain.tensor(DType::bf16)));
}

TEST_P(ReductionsTest, BiasIsAddedToEveryRowOfAStridedMatrix) {
  for (const DType dtype : kDTypes) {
    auto values = random_values(3 * 20, dtype, 3);
    const auto bias = random_values(17, dtype, 4);
    const Buffer x = upload(values, dtype);
    const Buffer b = upload(bias, dtype);

    device().run(AddBias{{x.data(), 3, 17, dtype, 20}, b.tensor(dtype)});

    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 17; ++j) {
        double& value = values[i * 20 + j];
        value = rounded(static_cast<float>(value + bias[j]), dtype);
      }
    }
    EXPECT_EQ(download(x.tensor(dtype)), values);
  }
}

TEST_P(ReductionsTest, BiasGradientIsTheColumnSum) {
  for (const std::int64_t rows : {1, 4, 7, 65}) {
    for (const std::int64_t cols : kLengths) {
      for (const DType dtype : kDTypes) {
        const auto values = random_values(rows * cols, dtype, 5);
        const Buffer d = upload(values, dtype);
        const Buffer out = buffer(cols, dtype);

        device().run(BiasGradient{as_matrix(d.tensor(dtype), rows, cols), out.tensor(dtype)});

        std::vector<double> expected(static_cast<std::size_t>(cols), 0);
        for (std::size_t i = 0; i < values.size(); ++i) expected[i % expected.size()] += values[i];
        expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
      }
    }
  }
}

TEST_P(ReductionsTest, BiasGradientOfManyRowsOfAStridedMatrixIsTheColumnSum) {
  constexpr std::int64_t kRows = 700;
  for (const std::int64_t cols : {1, 24, 264, 513}) {
    for (const std::int64_t stride : {cols, cols + 8}) {
      for (const DType dtype : kDTypes) {
        const auto values = random_values(kRows * stride, dtype, 6);
        const Buffer d = upload(values, dtype);
        const Buffer out = buffer(cols, dtype);

        device().run(BiasGradient{{d.data(), kRows, cols, dtype, stride}, out.tensor(dtype)});

        std::vector<double> expected(static_cast<std::size_t>(cols), 0);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const std::size_t col = i % static_cast<std::size_t>(stride);
          if (col < expected.size()) expected[col] += values[i];
        }
        expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
      }
    }
  }
}

// Whichever block or thread is first.
TEST_P(ReductionsTest, TheSameSumsGiveTheSameBits) {
  constexpr std::int64_t kRows = 300;
  constexpr std::int64_t kCols = 100;
  const auto values = random_values(kRows * kCols, DType::fp32, 7);
  const Buffer x = upload(values);
  std::vector<double> sums[2];
  for (auto& own : sums) {
    const Buffer squares = upload({0});
    const Buffer out = buffer(kCols);

    device().run(AddSquares{x.tensor(DType::fp32), squares.tensor(DType::fp32)});
    device().run(
        BiasGradient{as_matrix(x.tensor(DType::fp32), kRows, kCols), out.tensor(DType::fp32)});

    own = download(out.tensor(DType::fp32));
    own.push_back(download(squares.tensor(DType::fp32)).front());
  }
  EXPECT_EQ(sums[0], sums[1]);
}

}  // namespace

}  // namespace dstune::testing::reductions_test
