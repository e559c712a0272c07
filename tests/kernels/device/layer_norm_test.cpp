#include <cmath>

#include "core/device/operations/norms.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::layer_norm_test {

namespace {

class LayerNormTest : public DeviceTest {
 protected:
  /// Backward's, in place.
  void expect_sums(std::int64_t rows, std::int64_t cols, DType dtype = DType::fp32);
};
INSTANTIATE_TEST_SUITE_P(Devices, LayerNormTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr double kEpsilon = 1e-5;

struct Reference {
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<double> out;
};

Reference layer_norm(const std::vector<double>& x, const std::vector<double>& gamma,
                     const std::vector<double>& beta) {
  const std::size_t cols = gamma.size();
  Reference result;
  result.out.resize(x.size());
  for (std::size_t first = 0; first < x.size(); first += cols) {
    double mean = 0;
    double variance = 0;
    for (std::size_t j = 0; j < cols; ++j) mean += x[first + j] / static_cast<double>(cols);
    for (std::size_t j = 0; j < cols; ++j) {
      variance += std::pow(x[first + j] - mean, 2) / static_cast<double>(cols);
    }
    const double rstd = 1 / std::sqrt(variance + kEpsilon);
    for (std::size_t j = 0; j < cols; ++j) {
      result.out[first + j] = (x[first + j] - mean) * rstd * gamma[j] + beta[j];
    }
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
  }
  return result;
}

TEST_P(LayerNormTest, RowsAreNormalisedAndTheirMomentsSaved) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t cols : {7, 16, 17, 63, 64, 65, 129, 1600, 4099, 8200}) {
    for (const DType dtype : kDTypes) {
      const auto x = random_values(kRows * cols, dtype, 1);
      const auto gamma = random_values(cols, dtype, 2);
      const auto beta = random_values(cols, dtype, 3);
      const Buffer x_buffer = upload(x, dtype);
      const Buffer gamma_buffer = upload(gamma, dtype);
      const Buffer beta_buffer = upload(beta, dtype);
      const Buffer mean = buffer(kRows);
      const Buffer rstd = buffer(kRows);
      const Buffer out = buffer(kRows * cols, dtype);

      device().run(LayerNorm{.x = as_matrix(x_buffer.tensor(dtype), kRows, cols),
                             .gamma = gamma_buffer.tensor(dtype),
                             .beta = beta_buffer.tensor(dtype),
                             .epsilon = kEpsilon,
                             .saved = {mean.tensor(DType::fp32), rstd.tensor(DType::fp32)},
                             .out = as_matrix(out.tensor(dtype), kRows, cols)});

      const Reference expected = layer_norm(x, gamma, beta);
      expect_close(download(out.tensor(dtype)), expected.out, tolerance_of(dtype));
      expect_close(download(mean.tensor(DType::fp32)), expected.mean, 1e-5);
      expect_close(download(rstd.tensor(DType::fp32)), expected.rstd, 1e-5);
    }
  }
}

TEST_P(LayerNormTest, BackwardIsTheGradientOfForward) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t cols : {7, 16, 33}) {
    for (const DType dtype : kDTypes) {
      const auto x = random_values(kRows * cols, dtype, 1);
      const auto gamma = random_values(cols, dtype, 2);
      const auto beta = random_values(cols, dtype, 3);
      const auto d_out = random_values(kRows * cols, dtype, 4);
      const Buffer x_buffer = upload(x, dtype);
      const Buffer gamma_buffer = upload(gamma, dtype);
      const Buffer d_out_buffer = upload(d_out, dtype);
      const Reference saved = layer_norm(x, gamma, beta);
      const Buffer mean = upload(saved.mean);
      const Buffer rstd = upload(saved.rstd);
      const Buffer d_x = buffer(kRows * cols, dtype);
      const Buffer d_gamma = buffer(cols, dtype);
      const Buffer d_beta = buffer(cols, dtype);

      device().run(LayerNormBackward{.d_out = as_matrix(d_out_buffer.tensor(dtype), kRows, cols),
                                     .x = as_matrix(x_buffer.tensor(dtype), kRows, cols),
                                     .gamma = gamma_buffer.tensor(dtype),
                                     .saved = {mean.tensor(DType::fp32), rstd.tensor(DType::fp32)},
                                     .d_x = as_matrix(d_x.tensor(dtype), kRows, cols),
                                     .d_gamma = d_gamma.tensor(dtype),
                                     .d_beta = d_beta.tensor(dtype)});

      using Values = std::vector<double>;
      expect_close(
          download(d_x.tensor(dtype)),
          numeric_gradient(
              [&](const Values& v) { return dot(layer_norm(v, gamma, beta).out, d_out); }, x),
          tolerance_of(dtype));
      expect_close(
          download(d_gamma.tensor(dtype)),
          numeric_gradient([&](const Values& v) { return dot(layer_norm(x, v, beta).out, d_out); },
                           gamma),
          tolerance_of(dtype));
      expect_close(
          download(d_beta.tensor(dtype)),
          numeric_gradient([&](const Values& v) { return dot(layer_norm(x, gamma, v).out, d_out); },
                           beta),
          tolerance_of(dtype));
    }
  }
}

/// The sums of d_out xhat and of d_out over the rows.
struct ColumnSums {
  std::vector<double> gamma;
  std::vector<double> beta;
};

ColumnSums column_sums(const std::vector<double>& x, const std::vector<double>& d_out,
                       const Reference& saved, std::size_t cols) {
  ColumnSums sums{std::vector<double>(cols, 0), std::vector<double>(cols, 0)};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / cols;
    sums.gamma[i % cols] += d_out[i] * (x[i] - saved.mean[row]) * saved.rstd[row];
    sums.beta[i % cols] += d_out[i];
  }
  return sums;
}

void LayerNormTest::expect_sums(std::int64_t rows, std::int64_t cols, DType dtype) {
  const auto x = random_values(rows * cols, dtype, 1);
  const auto d_out = random_values(rows * cols, dtype, 2);
  const std::vector<double> ones(static_cast<std::size_t>(cols), 1);
  const Reference saved = layer_norm(x, ones, ones);
  const Buffer x_buffer = upload(x, dtype);
  const Buffer gamma = upload(ones, dtype);
  const Buffer mean = upload(saved.mean);
  const Buffer rstd = upload(saved.rstd);
  const Buffer d_x = upload(d_out, dtype);  // in place
  const Buffer d_gamma = buffer(cols, dtype);
  const Buffer d_beta = buffer(cols, dtype);

  device().run(LayerNormBackward{.d_out = as_matrix(d_x.tensor(dtype), rows, cols),
                                 .x = as_matrix(x_buffer.tensor(dtype), rows, cols),
                                 .gamma = gamma.tensor(dtype),
                                 .saved = {mean.tensor(DType::fp32), rstd.tensor(DType::fp32)},
                                 .d_x = as_matrix(d_x.tensor(dtype), rows, cols),
                                 .d_gamma = d_gamma.tensor(dtype),
                                 .d_beta = d_beta.tensor(dtype)});

  const double tolerance = dtype == DType::fp32 ? 1e-5 : tolerance_of(dtype);
  const ColumnSums expected = column_sums(x, d_out, saved, static_cast<std::size_t>(cols));
  expect_close(download(d_gamma.tensor(dtype)), expected.gamma, tolerance);
  expect_close(download(d_beta.tensor(dtype)), expected.beta, tolerance);
  const auto actual = download(d_x.tensor(dtype));
  double of_row = 0;  // a gradient along the ones, which change no xhat
  for (std::int64_t j = 0; j < cols; ++j) of_row += actual[static_cast<std::size_t>(j)];
  EXPECT_NEAR(of_row, 0, dtype == DType::fp32 ? 1e-3 : 0.2);
}

TEST_P(LayerNormTest, GradientsOfManyOrWideRowsAreSummedUp) {
  const std::int64_t shapes[][2] = {{700, 24}, {300, 5},  {512, 40},
                                    {5, 2100}, {3, 6000}, {3, 8200}};
  for (const auto& [rows, cols] : shapes) expect_sums(rows, cols);
  for (const DType dtype : {DType::bf16, DType::fp16}) expect_sums(512, 40, dtype);
}

// CUDA then sums by parts; on the host that takes a quarter of a minute (label long), and the CPU's
// one sum in fp32 is not so near.
TEST_P(LayerNormTest, DISABLED_GradientsOfVeryManyRowsAreSummedUp) { expect_sums(66000, 3); }

}  // namespace

}  // namespace dstune::testing::layer_norm_test
