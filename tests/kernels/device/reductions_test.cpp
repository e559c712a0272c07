#include <limits>

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

namespace {

class ReductionsTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ReductionsTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(ReductionsTest, SumOfSquaresIsAccumulatedInDouble) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto values = random_values(length, dtype, 1);
      const Buffer x = upload(values, dtype);

      const double sum = device().sum_of_squares(x.tensor(dtype));

      EXPECT_NEAR(sum, dot(values, values), 1e-13 * sum);
    }
  }
}

TEST_P(ReductionsTest, SumOfNothingIsZero) {
  EXPECT_EQ(device().sum_of_squares(Tensor{}), 0);
  EXPECT_FALSE(device().has_inf_or_nan(Tensor{}));
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

        EXPECT_TRUE(device().has_inf_or_nan(x.tensor(dtype))) << position;
      }
    }
  }
}

TEST_P(ReductionsTest, LargestFiniteNumbersAreNeitherInfinityNorNan) {
  const Buffer single = upload(
      std::vector<double>(19, static_cast<double>(std::numeric_limits<float>::max())), DType::fp32);
  const Buffer half = upload(std::vector<double>(19, -65504), DType::fp16);
  const Buffer brain = upload(std::vector<double>(19, 0x1.fep127), DType::bf16);

  EXPECT_FALSE(device().has_inf_or_nan(single.tensor(DType::fp32)));
  EXPECT_FALSE(device().has_inf_or_nan(half.tensor(DType::fp16)));
  EXPECT_FALSE(device().has_inf_or_nan(brain.tensor(DType::bf16)));
}

TEST_P(ReductionsTest, BiasIsAddedToEveryRowOfAStridedMatrix) {
  for (const DType dtype : kDTypes) {
    auto values = random_values(3 * 20, dtype, 3);
    const auto bias = random_values(17, dtype, 4);
    const Buffer x = upload(values, dtype);
    const Buffer b = upload(bias, dtype);

    device().add_bias({x.data(), 3, 17, dtype, 20}, b.tensor(dtype));

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

        device().bias_gradient(as_matrix(d.tensor(dtype), rows, cols), out.tensor(dtype));

        std::vector<double> expected(static_cast<std::size_t>(cols), 0);
        for (std::size_t i = 0; i < values.size(); ++i) expected[i % expected.size()] += values[i];
        expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
      }
    }
  }
}

}  // namespace

}  // namespace dstune::testing
