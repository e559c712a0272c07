#include <cmath>

#include "core/device/operations/losses.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::cross_entropy_test {

namespace {

class CrossEntropyTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, CrossEntropyTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kPadding = 3;

/// Rows 0 and 2 have the labels 0 and the last; the others do not count.
std::vector<std::int64_t> labels_of(std::int64_t cols) { return {0, -1, cols - 1, -100}; }

double log_sum(const double* row, std::int64_t cols) {
  double largest = row[0];
  for (std::int64_t j = 0; j < cols; ++j) largest = std::max(largest, row[j]);
  double sum = 0;
  for (std::int64_t j = 0; j < cols; ++j) sum += std::exp(row[j] - largest);
  return largest + std::log(sum);
}

/// What a loss and its gradient are by definition; `stride` elements between rows.
struct Expected {
  std::vector<double> losses;
  std::vector<double> gradient;

  Expected(std::vector<double> logits, const std::vector<std::int64_t>& labels, std::int64_t cols,
           std::int64_t stride, double cap = 0)
      : gradient(std::move(logits)) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      double* const row = gradient.data() + static_cast<std::int64_t>(i) * stride;
      for (std::int64_t j = 0; cap > 0 && j < cols; ++j) row[j] = cap * std::tanh(row[j] / cap);
      const double sum = log_sum(row, cols);
      losses.push_back(labels[i] < 0 ? 0 : sum - row[labels[i]]);
      for (std::int64_t j = 0; j < cols; ++j) {
        const double slope = cap > 0 ? 1 - row[j] / cap * (row[j] / cap) : 1;
        const double of_value = std::exp(row[j] - sum) - (j == labels[i] ? 1 : 0);
        row[j] = labels[i] < 0 ? 0 : of_value * slope;
      }
    }
  }
};

constexpr double kCaps[] = {0, 3};  // 0: none

// A sum of a row's terms in fp32 is rounded once per term, to either side.
double tolerance_of_loss(std::int64_t cols) {
  return 3e-6 + 1.2e-7 * std::sqrt(static_cast<double>(cols));
}

TEST_P(CrossEntropyTest, LogitsBecomeTheGradientOfTheirLosses) {
  for (const std::int64_t cols : kLengths) {
    for (const DType dtype : kDTypes) {
      const double cap = kCaps[cols % 2];
      SCOPED_TRACE(::testing::Message() << cols << " " << name_of(dtype) << ", cap " << cap);
      const std::int64_t stride = cols + kPadding;
      auto logits = random_values(kRows * stride, dtype, 1);
      for (double& value : logits) value = rounded(8 * value, dtype);
      const Buffer x = upload(logits, dtype);
      const Buffer labels = upload_indices(labels_of(cols));
      const Buffer losses = buffer(kRows);

      device().run(CrossEntropy{{x.data(), kRows, cols, dtype, stride},
                                labels.tensor(DType::int64),
                                losses.tensor(DType::fp32),
                                cap});

      const Expected expected(logits, labels_of(cols), cols, stride, cap);
      const double only_one =
          cols == 1 ? 1 : 0;  // x - x and 1 - 1, of exponentials that are rounded
      expect_close(download(losses.tensor(DType::fp32)), expected.losses, tolerance_of_loss(cols),
                   only_one);
      expect_close(download(x.tensor(dtype)), expected.gradient, tolerance_of(dtype), only_one);
    }
  }
}

TEST_P(CrossEntropyTest, TheGradientIsThatOfFiniteDifferences) {
  constexpr std::int64_t kCols = 7;
  constexpr double kCap = 0.5;
  const auto logits = random_values(kRows * kCols, DType::fp32, 2);
  const auto labels = labels_of(kCols);
  const Buffer x = upload(logits);
  const Buffer of_labels = upload_indices(labels);
  const Buffer losses = buffer(kRows);

  device().run(CrossEntropy{as_matrix(x.tensor(DType::fp32), kRows, kCols),
                            of_labels.tensor(DType::int64), losses.tensor(DType::fp32), kCap});

  const auto total = [&](const std::vector<double>& values) {
    double sum = 0;
    for (const double loss : Expected(values, labels, kCols, kCols, kCap).losses) sum += loss;
    return sum;
  };
  expect_close(download(x.tensor(DType::fp32)), numeric_gradient(total, logits), 5e-6);
}

/// A tile of all columns at a time.
class Tiles {
 public:
  Tiles(std::int64_t cols, std::int64_t width) : cols_(cols), width_(width) {}

  template <class F>
  void for_each(const Buffer& logits, DType dtype, F f) const {
    for (std::int64_t first = 0; first < cols_; first += width_) {
      const Tensor from = logits.tensor(dtype).slice(first, kRows * cols_ - first);
      f(first, Matrix{from.data, kRows, std::min(width_, cols_ - first), dtype, cols_});
    }
  }

 private:
  std::int64_t cols_;
  std::int64_t width_;
};

// Numbers of rows further on follow those of these rows, as in a larger batch.
TEST_P(CrossEntropyTest, TilesGiveTheLossesAndTheGradientOfTheWhole) {
  constexpr double kFactor = 0.25;
  constexpr std::int64_t kAllRows = kRows + 2;
  for (const auto& [cols, width] :
       {std::pair{1, 1}, {17, 16}, {129, 50}, {2048, 1031}, {4096, 1030}}) {
    for (const DType dtype : kDTypes) {
      const double cap = kCaps[width % 2];
      SCOPED_TRACE(::testing::Message() << cols << " " << name_of(dtype) << ", cap " << cap);
      auto logits = random_values(kRows * cols, dtype, 3);
      for (double& value : logits) value = rounded(8 * value, dtype);
      const std::vector<std::int64_t> labels{0, cols - 1, cols / 2, width - 1};
      const double none = -std::numeric_limits<double>::infinity();
      std::vector<double> start(kRowStatistics * kAllRows, 0);
      std::fill_n(start.begin(), kAllRows, none);
      const Buffer x = upload(logits, dtype);
      const Buffer of_labels = upload_indices(labels);
      const Buffer numbers = upload(start);
      const Matrix statistics{numbers.data(), kRowStatistics, kRows, DType::fp32, kAllRows};
      const Buffer log_sums = buffer(kRows);
      const Buffer losses = buffer(kRows);
      const Tensor label_tensor = of_labels.tensor(DType::int64);
      const Tiles tiles(cols, width);

      tiles.for_each(x, dtype, [&](std::int64_t first, const Matrix& tile) {
        device().run(FoldLogits{tile, label_tensor, first, statistics, cap});
      });
      device().run(LogSums{statistics, log_sums.tensor(DType::fp32), losses.tensor(DType::fp32)});
      tiles.for_each(x, dtype, [&](std::int64_t first, const Matrix& tile) {
        device().run(
            LogitsGradient{tile, label_tensor, first, log_sums.tensor(DType::fp32), kFactor, cap});
      });

      Expected expected(logits, labels, cols, cols, cap);
      for (double& value : expected.gradient) value *= kFactor;
      expect_close(download(losses.tensor(DType::fp32)), expected.losses, tolerance_of_loss(cols));
      expect_close(download(x.tensor(dtype)), expected.gradient, tolerance_of(dtype));
    }
  }
}

}  // namespace

}  // namespace dstune::testing::cross_entropy_test
