#include "core/device/operations/gemm.hpp"

#include <numeric>

#include "core/device/operations/elementwise.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::gemm_test {

namespace {

class GemmTest : public DeviceTest {
 protected:
  /// How often a result with a bias is rounded: cuBLASLt does it twice where it also adds what was
  /// there (seen on an H200, CUDA 13.0).
  static double roundings(double beta) { return GetParam().is_real_gpu && beta != 0 ? 2 : 1; }
};
INSTANTIATE_TEST_SUITE_P(Devices, GemmTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

struct Problem {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  Transpose transpose_a = Transpose::no;
  Transpose transpose_b = Transpose::no;
  double beta = 0;
};

/// Element (i, j) of op(A) op(B), A and B as stored with `padding` elements between rows.
double product_at(const Problem& p, const std::vector<double>& a, const std::vector<double>& b,
                  std::int64_t padding, std::int64_t i, std::int64_t j) {
  const auto at = [&](const std::vector<double>& matrix, Transpose transpose, std::int64_t row,
                      std::int64_t col, std::int64_t rows, std::int64_t cols) {
    const std::int64_t index =
        transpose == Transpose::no ? row * (cols + padding) + col : col * (rows + padding) + row;
    return matrix[static_cast<std::size_t>(index)];
  };
  double sum = 0;
  for (std::int64_t l = 0; l < p.k; ++l) {
    sum += at(a, p.transpose_a, i, l, p.m, p.k) * at(b, p.transpose_b, l, j, p.k, p.n);
  }
  return sum;
}

Matrix stored(const Buffer& buffer, DType dtype, Transpose transpose, std::int64_t rows,
              std::int64_t cols, std::int64_t padding) {
  if (transpose == Transpose::yes) std::swap(rows, cols);
  return {buffer.data(), rows, cols, dtype, cols + padding};
}

std::int64_t stored_size(Transpose transpose, std::int64_t rows, std::int64_t cols,
                         std::int64_t padding) {
  return transpose == Transpose::no ? rows * (cols + padding) : cols * (rows + padding);
}

TEST_P(GemmTest, AllTransposesSizesAndTypesAgreeWithTheDefinition) {
  const std::int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 7},   {16, 7, 65}, {17, 63, 16},
                                   {65, 64, 63}, {129, 16, 1}, {7, 129, 65}};
  const Transpose both[] = {Transpose::no, Transpose::yes};
  for (const auto& [m, n, k] : sizes) {
    for (const Transpose ta : both) {
      for (const Transpose tb : both) {
        for (const DType dtype : kDTypes) {
          for (const double beta : {0.0, 1.0}) {
            const Problem p{m, n, k, ta, tb, beta};
            const std::int64_t padding = beta == 0 ? 0 : 3;
            const auto a = random_values(stored_size(ta, m, k, padding), dtype, 1);
            const auto b = random_values(stored_size(tb, k, n, padding), dtype, 2);
            auto expected = random_values(m * (n + padding), dtype, 3);
            const Buffer a_buffer = upload(a, dtype);
            const Buffer b_buffer = upload(b, dtype);
            const Buffer c_buffer = upload(expected, dtype);

            device().run(Gemm{.transpose_a = ta,
                              .transpose_b = tb,
                              .a = stored(a_buffer, dtype, ta, m, k, padding),
                              .b = stored(b_buffer, dtype, tb, k, n, padding),
                              .beta = beta,
                              .c = {c_buffer.data(), m, n, dtype, n + padding}});

            for (std::int64_t i = 0; i < m; ++i) {
              for (std::int64_t j = 0; j < n; ++j) {
                double& c = expected[static_cast<std::size_t>(i * (n + padding) + j)];
                c = product_at(p, a, b, padding, i, j) + beta * c;
              }
            }
            expect_close(download(c_buffer.tensor(dtype)), expected, tolerance_of(dtype));
          }
        }
      }
    }
  }
}

// Sums of 16-bit products that must not be rounded in between.
TEST_P(GemmTest, SixteenBitProductsAreAddedToFp32) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const Problem p{17, 65, 63, Transpose::yes, Transpose::no, 1};
    const auto a = random_values(p.k * p.m, dtype, 1);
    const auto b = random_values(p.k * p.n, dtype, 2);
    auto expected = random_values(p.m * p.n, DType::fp32, 3);
    const Buffer a_buffer = upload(a, dtype);
    const Buffer b_buffer = upload(b, dtype);
    const Buffer c_buffer = upload(expected);

    device().run(Gemm{.transpose_a = Transpose::yes,
                      .a = stored(a_buffer, dtype, Transpose::yes, p.m, p.k, 0),
                      .b = stored(b_buffer, dtype, Transpose::no, p.k, p.n, 0),
                      .beta = 1,
                      .c = as_matrix(c_buffer.tensor(DType::fp32), p.m, p.n)});

    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        expected[static_cast<std::size_t>(i * p.n + j)] += product_at(p, a, b, 0, i, j);
      }
    }
    expect_close(download(c_buffer.tensor(DType::fp32)), expected, tolerance_of(DType::fp32));
  }
}

TEST_P(GemmTest, EveryRowGetsTheBias) {
  constexpr std::int64_t kOffset = 1;
  const std::int64_t sizes[][3] = {{2, 2, 2}, {16, 7, 65}, {17, 64, 16}, {7, 1040, 65}};
  for (const auto& [m, n, k] : sizes) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      for (const DType dtype : kDTypes) {
        for (const double beta : {0.0, 1.0}) {
          const Problem p{m, n, k, Transpose::no, tb, beta};
          const auto a = random_values(m * k, dtype, 1);
          const auto b = random_values(k * n, dtype, 2);
          auto expected = random_values(m * n, dtype, 3);
          const auto bias = random_values(n + kOffset, dtype, 4);
          const Buffer a_buffer = upload(a, dtype);
          const Buffer b_buffer = upload(b, dtype);
          const Buffer c_buffer = upload(expected, dtype);
          const Buffer bias_buffer = upload(bias, dtype);

          device().run(Gemm{.transpose_b = tb,
                            .a = stored(a_buffer, dtype, Transpose::no, m, k, 0),
                            .b = stored(b_buffer, dtype, tb, k, n, 0),
                            .beta = beta,
                            .c = as_matrix(c_buffer.tensor(dtype), m, n),
                            .bias = bias_buffer.tensor(dtype).slice(kOffset, n)});

          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              double& c = expected[static_cast<std::size_t>(i * n + j)];
              c = product_at(p, a, b, 0, i, j) + beta * c +
                  bias[static_cast<std::size_t>(kOffset + j)];
            }
          }
          expect_close(download(c_buffer.tensor(dtype)), expected,
                       roundings(beta) * tolerance_of(dtype));
        }
      }
    }
  }
}

// 256.75 + 0.5 is nearer to 258 than to 256, bf16's neighbours; 256.75 alone is not.
TEST_P(GemmTest, ABiasIsAddedBeforeTheResultIsRounded) {
  const struct {
    DType dtype;
    double large;
  } cases[] = {{DType::bf16, 256}, {DType::fp16, 2048}};
  for (const auto& [dtype, large] : cases) {
    const Buffer a = upload({1, 0.75, 1, 0.75}, dtype);
    const Buffer b = upload({large, large, 1, 1}, dtype);
    const Buffer bias = upload({0.5, 0}, dtype);
    const Buffer c = upload({0, 0, 0, 0}, dtype);

    device().run(Gemm{.a = as_matrix(a.tensor(dtype), 2, 2),
                      .b = as_matrix(b.tensor(dtype), 2, 2),
                      .c = as_matrix(c.tensor(dtype), 2, 2),
                      .bias = bias.tensor(dtype)});

    EXPECT_EQ(download(c.tensor(dtype)), (std::vector<double>{large + 2, large, large + 2, large}));
  }
}

TEST_P(GemmTest, BlocksOf16BitProductsAreRoundedOnceUnlessALibraryDoesItTwice) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const Problem p{515, 1027, 1029, Transpose::no, Transpose::yes, 1};
    const auto a = random_values(p.m * p.k, dtype, 1);
    const auto b = random_values(p.n * p.k, dtype, 2);
    const auto before = random_values(p.m * p.n, dtype, 3);
    const auto bias = random_values(p.n, dtype, 4);
    const Buffer a_buffer = upload(a, dtype);
    const Buffer b_buffer = upload(b, dtype);
    const Buffer c_buffer = upload(before, dtype);
    const Buffer bias_buffer = upload(bias, dtype);

    device().run(Gemm{.transpose_a = p.transpose_a,
                      .transpose_b = p.transpose_b,
                      .a = as_matrix(a_buffer.tensor(dtype), p.m, p.k),
                      .b = as_matrix(b_buffer.tensor(dtype), p.n, p.k),
                      .beta = p.beta,
                      .c = as_matrix(c_buffer.tensor(dtype), p.m, p.n),
                      .bias = bias_buffer.tensor(dtype)});

    const auto actual = download(c_buffer.tensor(dtype));
    for (const std::int64_t i : {0, 1, 255, 511, 512, 514}) {
      for (const std::int64_t j : {0, 17, 1023, 1024, 1026}) {
        const auto index = static_cast<std::size_t>(i * p.n + j);
        const double expected =
            product_at(p, a, b, 0, i, j) + before[index] + bias[static_cast<std::size_t>(j)];
        EXPECT_NEAR(actual[index], expected,
                    roundings(p.beta) * tolerance_of(dtype) * std::max(1.0, std::abs(expected)))
            << i << ", " << j;
      }
    }
  }
}

TEST_P(GemmTest, LongProductsAreRight) {
  constexpr std::int64_t kSize = 1030;
  const Buffer a = buffer(kSize * 2100);
  const Buffer b = buffer(2100 * kSize);
  const Buffer c = buffer(kSize * kSize);
  std::vector<double> bias(kSize);
  std::iota(bias.begin(), bias.end(), 0);
  const Buffer bias_buffer = upload(bias);
  device().run(FillConstant{a.tensor(DType::fp32), 1});
  device().run(FillConstant{b.tensor(DType::fp32), 2});

  device().run(Gemm{.a = as_matrix(a.tensor(DType::fp32), kSize, 2100),
                    .b = as_matrix(b.tensor(DType::fp32), 2100, kSize),
                    .c = as_matrix(c.tensor(DType::fp32), kSize, kSize),
                    .bias = bias_buffer.tensor(DType::fp32)});

  std::vector<double> expected(kSize * kSize);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 4200 + bias[i % kSize];
  EXPECT_EQ(download(c.tensor(DType::fp32)), expected);
}

}  // namespace

}  // namespace dstune::testing::gemm_test
