#include <cstdint>
#include <vector>

#include "core/device/operations/rows.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::weighted_rows_test {

namespace {

constexpr std::int64_t kRows = 6;

class WeightedRowsTest : public DeviceTest {
 protected:
  static Matrix matrix(const Buffer& buffer, DType dtype, std::int64_t rows) {
    return as_matrix(buffer.tensor(dtype), rows, buffer.tensor(dtype).numel / rows);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, WeightedRowsTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(WeightedRowsTest, RowsAreScaledAndTheirDotsAreTheGradientByTheScale) {
  for (const std::int64_t cols : {1, 7, 130}) {
    for (const DType dtype : kDTypes) {
      const auto x = random_values(kRows * cols, dtype, 1);
      const auto y = random_values(kRows * cols, DType::fp32, 2);
      const auto factors = random_values(kRows, DType::fp32, 3);
      const Buffer in = upload(x, dtype);
      const Buffer other = upload(y);
      const Buffer scale = upload(factors);
      const Buffer scaled = buffer(kRows * cols);
      const Buffer products = buffer(kRows * cols);
      const Buffer dots = buffer(kRows);

      device().run(ScaleRows{matrix(in, dtype, kRows), scale.tensor(DType::fp32),
                             matrix(scaled, DType::fp32, kRows)});
      device().run(RowDots{matrix(other, DType::fp32, kRows), matrix(in, dtype, kRows),
                           products.tensor(DType::fp32), dots.tensor(DType::fp32)});

      std::vector<double> expected(x.size());
      std::vector<double> sums(kRows, 0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / static_cast<std::size_t>(cols);
        expected[i] = x[i] * factors[row];
        sums[row] += x[i] * y[i];
      }
      expect_close(download(scaled.tensor(DType::fp32)), expected, 1e-6);
      expect_close(download(dots.tensor(DType::fp32)), sums, 1e-5);
    }
  }
}

TEST_P(WeightedRowsTest, EveryFewRowsAreSummedUpAndRepeatingThemIsTheGradient) {
  constexpr std::int64_t kGroup = 3;
  constexpr std::int64_t kSums = kRows / kGroup;
  for (const std::int64_t cols : {1, 8, 67}) {
    for (const DType dtype : kDTypes) {
      const auto x = random_values(kRows * cols, dtype, 1);
      const Buffer in = upload(x, dtype);
      const Buffer sums = buffer(kSums * cols, dtype);
      const Buffer repeated = buffer(kRows * cols, dtype);

      device().run(SumGroups{matrix(in, dtype, kRows), matrix(sums, dtype, kSums)});
      device().run(RepeatRows{matrix(sums, dtype, kSums), matrix(repeated, dtype, kRows)});

      std::vector<double> expected(static_cast<std::size_t>(kSums * cols), 0);
      const auto place = [&](std::size_t i) {
        const std::size_t width = static_cast<std::size_t>(cols);
        return i / width / kGroup * width + i % width;
      };
      for (std::size_t i = 0; i < x.size(); ++i) expected[place(i)] += x[i];
      const auto actual = download(sums.tensor(dtype));
      expect_close(actual, expected, tolerance_of(dtype));
      const auto copies = download(repeated.tensor(dtype));
      for (std::size_t i = 0; i < copies.size(); ++i) EXPECT_EQ(copies[i], actual[place(i)]);
    }
  }
}

}  // namespace

}  // namespace dstune::testing::weighted_rows_test
