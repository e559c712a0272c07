#include "core/device/operations/rows.hpp"

#include <cmath>

#include "core/device/operations/losses.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::rows_test {

namespace {

class RowsTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, RowsTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(RowsTest, RowsAreCopiedBetweenMatricesOfAnyStride) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t cols : {1, 7, 8, 64}) {
    for (const DType dtype : kDTypes) {
      SCOPED_TRACE(::testing::Message() << cols << " " << name_of(dtype));
      const std::int64_t stride = 2 * cols;
      const auto values = random_values(kRows * stride, dtype, 1);
      const Buffer in = upload(values, dtype);
      const Buffer dense = buffer(kRows * cols, dtype);
      const Buffer out = upload(std::vector<double>(values.size(), 0), dtype);
      const Matrix middle = as_matrix(dense.tensor(dtype), kRows, cols);
      const Tensor second = out.tensor(dtype).slice(cols, kRows * stride - cols);

      device().run(CopyRows{{in.data(), kRows, cols, dtype, stride}, middle});
      device().run(CopyRows{middle, {second.data, kRows, cols, dtype, stride}});

      std::vector<double> expected(values.size(), 0);
      for (std::int64_t i = 0; i < kRows * stride; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (i % stride < cols) expected[at + static_cast<std::size_t>(cols)] = values[at];
      }
      EXPECT_EQ(download(out.tensor(dtype)), expected);
    }
  }
}

TEST_P(RowsTest, IntegersAreCopiedToo) {
  const Buffer in = upload_indices({3, 1, 4, 1, 5, 9});
  const Buffer out = upload_indices({0, 0, 0, 0});
  const Tensor from = in.tensor(DType::int64).slice(1, 5);

  device().run(
      CopyRows{{from.data, 2, 2, DType::int64, 3}, as_matrix(out.tensor(DType::int64), 2, 2)});

  EXPECT_EQ(download_indices(out), (std::vector<std::int64_t>{1, 4, 5, 9}));
}

TEST_P(RowsTest, ASumIsAddedWithItsFactor) {
  for (const std::int64_t count : kLengths) {
    const auto values = random_values(count, DType::fp32, 1);
    const Buffer x = upload(values);
    const Buffer sum = upload({5});

    device().run(AddSum{x.tensor(DType::fp32), 0.5, sum.tensor(DType::fp32)});

    double expected = 5;
    for (const double value : values) expected += 0.5 * value;
    EXPECT_NEAR(download(sum.tensor(DType::fp32)).front(), expected, 1e-5) << count;
  }
}

TEST_P(RowsTest, ArgmaxIsTheFirstOfTheLargest) {
  for (const std::int64_t cols : {3, 17, 129, 4097}) {
    std::vector<double> x(static_cast<std::size_t>(3 * cols), -2);
    const auto at = [&](std::int64_t i, std::int64_t j) -> double& {
      return x[static_cast<std::size_t>(i * cols + j)];
    };
    at(0, cols - 1) = 1;
    at(1, 1) = at(1, 2) = at(1, cols - 1) = 7;
    const Buffer in = upload(x);
    const Buffer out = upload_indices({9, 9, 9});

    device().run(Argmax{as_matrix(in.tensor(DType::fp32), 3, cols), out.tensor(DType::int64)});

    EXPECT_EQ(download_indices(out), (std::vector<std::int64_t>{cols - 1, 1, 0})) << cols;
  }
}

TEST_P(RowsTest, EntropyIsThatOfTheProbabilities) {
  constexpr std::int64_t kRows = 2;
  for (const std::int64_t cols : {1, 17, 1030}) {
    auto log_probs = random_values(kRows * cols, DType::fp32, 1);
    for (double& value : log_probs) value = rounded(value - 3, DType::fp32);
    const Buffer x = upload(log_probs);
    const Buffer probs = buffer(kRows * cols);
    const Buffer terms = buffer(kRows * cols);
    const Buffer out = buffer(kRows);
    const auto matrix = [&](const Buffer& buffer) {
      return as_matrix(buffer.tensor(DType::fp32), kRows, cols);
    };

    device().run(Entropy{matrix(x), matrix(probs), matrix(terms), out.tensor(DType::fp32)});

    std::vector<double> expected(kRows, 0);
    for (std::size_t i = 0; i < log_probs.size(); ++i) {
      expected[i / static_cast<std::size_t>(cols)] -= std::exp(log_probs[i]) * log_probs[i];
    }
    expect_close(download(out.tensor(DType::fp32)), expected, 1e-5);
  }
}

}  // namespace

}  // namespace dstune::testing::rows_test
