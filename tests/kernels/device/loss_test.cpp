#include <cmath>

#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"
#include "tests/kernels/device/device_test.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing::loss_test {

namespace {

class LossTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, LossTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr std::int64_t kRows = 4;

std::vector<double> log_softmax(const std::vector<double>& logits) {
  const std::size_t cols = logits.size() / kRows;
  std::vector<double> result(logits.size());
  for (std::size_t first = 0; first < logits.size(); first += cols) {
    double sum = 0;
    for (std::size_t j = 0; j < cols; ++j) sum += std::exp(logits[first + j]);
    for (std::size_t j = 0; j < cols; ++j) {
      result[first + j] = logits[first + j] - std::log(sum);
    }
  }
  return result;
}

/// Rows 0 and 2 have the labels 0 and the last; the others do not count.
std::vector<std::int64_t> labels_of(std::int64_t cols) { return {0, -1, cols - 1, -100}; }

double loss(const std::vector<double>& log_probs) {
  const std::size_t cols = log_probs.size() / kRows;
  return -(log_probs[0] + log_probs[3 * cols - 1]) / 2;
}

Matrix matrix(const Buffer& buffer, std::int64_t cols) {
  return as_matrix(buffer.tensor(DType::fp32), kRows, cols);
}

// A sum of a row's terms in fp32 is rounded once per term, by up to 6e-8 of itself, to either side.
constexpr double kRounding = 3e-6;
constexpr double kRoundingOfASum = 1.2e-7;

TEST_P(LossTest, LogSoftmaxAndLossAgreeWithTheirDefinitions) {
  auto lengths = kLengths;
  lengths.push_back(20011);  // more than a block has in its registers
  for (const std::int64_t cols : lengths) {
    auto logits = random_values(kRows * cols, DType::fp32, 1);
    for (double& value : logits) value = rounded(20 * value, DType::fp32);
    const double rounding = kRounding + kRoundingOfASum * std::sqrt(static_cast<double>(cols));
    const Buffer x = upload(logits);
    const Buffer labels = upload_indices(labels_of(cols));
    const Buffer log_probs = buffer(kRows * cols);

    device().run(LogSoftmax{matrix(x, cols), matrix(log_probs, cols)});
    const double actual =
        test::nll_loss(device(), matrix(log_probs, cols), labels.tensor(DType::int64));

    const auto expected = log_softmax(logits);
    const auto actual_log_probs = download(log_probs.tensor(DType::fp32));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual_log_probs[i], expected[i], rounding) << cols;
    }
    EXPECT_NEAR(actual, loss(expected), rounding) << cols;
  }
}

// PyTorch computes a 16-bit log-softmax in fp32 and rounds it once; so does its backward.
TEST_P(LossTest, SixteenBitLogitsAreRoundedOnce) {
  constexpr double kLossScale = 64;
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (const std::int64_t cols : {2, 7, 64, 1030, 3003}) {
      const auto rows = [&](const Buffer& of) { return as_matrix(of.tensor(dtype), kRows, cols); };
      const auto logits = random_values(kRows * cols, dtype, 1);
      const Buffer x = upload(logits, dtype);
      const Buffer labels = upload_indices(labels_of(cols));
      const Buffer log_probs = buffer(kRows * cols, dtype);
      const Buffer d_log_probs = buffer(kRows * cols, dtype);
      const Buffer d_logits = buffer(kRows * cols, dtype);

      device().run(LogSoftmax{rows(x), rows(log_probs)});
      const double actual = test::nll_loss(device(), rows(log_probs), labels.tensor(DType::int64));
      device().run(NllLossBackward{.labels = labels.tensor(DType::int64),
                                   .loss_scale = kLossScale,
                                   .out = rows(d_log_probs)});
      device().run(LogSoftmaxBackward{rows(d_log_probs), rows(log_probs), rows(d_logits)});

      const auto expected = log_softmax(logits);
      const auto saved = download(log_probs.tensor(dtype));
      expect_close(saved, expected, tolerance_of(dtype));
      EXPECT_NEAR(actual, loss(saved), 1e-6 * std::abs(actual) + 1e-6);
      const auto of_log_probs = download(d_log_probs.tensor(dtype));
      EXPECT_EQ(of_log_probs.front(), -kLossScale / 2);
      std::vector<double> gradient(expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const bool counts = i / static_cast<std::size_t>(cols) % 2 == 0;
        gradient[i] = of_log_probs[i] + (counts ? kLossScale / 2 * std::exp(saved[i]) : 0);
      }
      expect_close(download(d_logits.tensor(dtype)), gradient, tolerance_of(dtype));
    }
  }
}

TEST_P(LossTest, LabelsAreTheNextTokensOfEachSequence) {
  const Buffer tokens = upload_indices({3, 1, 4, 1, 5, 9});
  const Buffer labels = upload_indices({7, 7, 7, 7, 7, 7});

  device().run(NextTokens{
      .tokens = tokens.tensor(DType::int64), .sequence = 3, .labels = labels.tensor(DType::int64)});

  EXPECT_EQ(download_indices(labels), (std::vector<std::int64_t>{1, 4, -1, 5, 9, -1}));
}

TEST_P(LossTest, HugeLogitsDoNotOverflow) {
  const Buffer x = upload({1e30, -1e30, 1e30, 1e30, 5, 5, 0, 0});
  const Buffer log_probs = buffer(8);

  device().run(LogSoftmax{matrix(x, 2), matrix(log_probs, 2)});

  const double half = -std::log(2.0);
  const auto actual = download(log_probs.tensor(DType::fp32));
  EXPECT_EQ(actual[0], 0);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_NEAR(actual[i], half, 1e-6);
}

TEST_P(LossTest, NanReachesTheLoss) {
  const Buffer x = upload({0, std::nan(""), 1, 2, 3, 4, 5, 6});
  const Buffer log_probs = buffer(8);
  const Buffer labels = upload_indices({0, 0, 0, 0});

  device().run(LogSoftmax{matrix(x, 2), matrix(log_probs, 2)});

  EXPECT_TRUE(
      std::isnan(test::nll_loss(device(), matrix(log_probs, 2), labels.tensor(DType::int64))));
}

TEST_P(LossTest, LossWithoutCountedRowsIsZero) {
  const Buffer log_probs = upload(std::vector<double>(8, -1));
  const Buffer labels = upload_indices({-1, -1, -1, -1});

  EXPECT_EQ(test::nll_loss(device(), matrix(log_probs, 2), labels.tensor(DType::int64)), 0);
}

TEST_P(LossTest, BackwardIsTheScaledGradientOfTheLoss) {
  constexpr double kLossScale = 128;
  for (const std::int64_t cols : {2, 7, 17, 129}) {
    const auto logits = random_values(kRows * cols, DType::fp32, 1);
    const Buffer log_probs = upload(log_softmax(logits));
    const Buffer labels = upload_indices(labels_of(cols));
    const Buffer d_log_probs = buffer(kRows * cols);
    const Buffer d_logits = buffer(kRows * cols);

    device().run(NllLossBackward{.labels = labels.tensor(DType::int64),
                                 .loss_scale = kLossScale,
                                 .out = matrix(d_log_probs, cols)});
    device().run(LogSoftmaxBackward{.d_log_probs = matrix(d_log_probs, cols),
                                    .log_probs = matrix(log_probs, cols),
                                    .d_logits = matrix(d_logits, cols)});

    auto expected_d_log_probs = std::vector<double>(logits.size(), 0);
    expected_d_log_probs.front() = -kLossScale / 2;
    expected_d_log_probs[static_cast<std::size_t>(3 * cols - 1)] = -kLossScale / 2;
    EXPECT_EQ(download(d_log_probs.tensor(DType::fp32)), expected_d_log_probs);
    const auto expected = numeric_gradient(
        [&](const std::vector<double>& v) { return kLossScale * loss(log_softmax(v)); }, logits);
    expect_close(download(d_logits.tensor(DType::fp32)), expected, 5e-6);
  }
}

}  // namespace

}  // namespace dstune::testing::loss_test
