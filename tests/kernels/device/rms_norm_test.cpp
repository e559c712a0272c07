#include <algorithm>
#include <cmath>

#include "core/device/operations/norms.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::rms_norm_test {

namespace {

constexpr double kEpsilon = 1e-5;

struct Reference {
  std::vector<double> rrms;
  std::vector<double> normalised;
  std::vector<double> out;
};

Reference rms_norm(const std::vector<double>& x, const std::vector<double>& weight, double offset) {
  const std::size_t cols = weight.size();
  Reference result;
  for (std::size_t first = 0; first < x.size(); first += cols) {
    double squares = 0;
    for (std::size_t j = 0; j < cols; ++j) squares += x[first + j] * x[first + j];
    const double rrms = 1 / std::sqrt(squares / static_cast<double>(cols) + kEpsilon);
    result.rrms.push_back(rrms);
    for (std::size_t j = 0; j < cols; ++j) {
      result.normalised.push_back(x[first + j] * rrms);
      result.out.push_back(result.normalised.back() * (offset + weight[j]));
    }
  }
  return result;
}

class RmsNormTest : public DeviceTest {
 protected:
  /// Of one (rows, cols); the weight multiplies fp32 numbers if it has an offset.
  struct Buffers {
    std::int64_t rows;
    std::int64_t cols;
    DType dtype;
    double offset;
    Buffer x{};
    Buffer weight{};
    Buffer copy{};
    Buffer rrms{};
    Buffer normalised{};
    Buffer out{};

    DType inner() const { return offset == 0 ? dtype : DType::fp32; }
    Matrix matrix(const Buffer& buffer, DType type) const {
      return as_matrix(buffer.tensor(type), rows, cols);
    }
    RmsNormSaved saved() const {
      return {matrix(dtype == DType::fp32 ? x : copy, DType::fp32), rrms.tensor(DType::fp32),
              matrix(normalised, inner())};
    }
  };

  Buffers forward(const std::vector<double>& x, const std::vector<double>& weight, DType dtype,
                  double offset) {
    const auto cols = static_cast<std::int64_t>(weight.size());
    const auto count = static_cast<std::int64_t>(x.size());
    Buffers all{.rows = count / cols, .cols = cols, .dtype = dtype, .offset = offset};
    all.x = upload(x, dtype);
    all.weight = upload(weight, dtype);
    all.copy = buffer(count);
    all.rrms = buffer(all.rows);
    all.normalised = buffer(count, all.inner());
    all.out = buffer(count, dtype);
    const Buffer scratch = buffer(rms_norm_scratch(dtype, count));
    device().run(RmsNorm{.x = all.matrix(all.x, dtype),
                         .weight = all.weight.tensor(dtype),
                         .epsilon = kEpsilon,
                         .offset = offset,
                         .saved = all.saved(),
                         .scratch = scratch.tensor(DType::fp32),
                         .out = all.matrix(all.out, dtype)});
    return all;
  }

  struct Gradients {
    std::vector<double> x;
    std::vector<double> weight;
  };

  /// In place: d_x is d_out.
  /// @param trains  else the weight is frozen, and the result has no gradient of it
  Gradients backward(const Buffers& all, const std::vector<double>& d_out, bool trains = true) {
    const Buffer d_x = upload(d_out, all.dtype);
    const Buffer d_weight = buffer(all.cols, all.dtype);
    const Buffer scratch = buffer(rms_norm_backward_scratch(all.dtype, all.rows * all.cols));
    device().run(RmsNormBackward{.d_out = all.matrix(d_x, all.dtype),
                                 .weight = all.weight.tensor(all.dtype),
                                 .offset = all.offset,
                                 .saved = all.saved(),
                                 .scratch = scratch.tensor(DType::fp32),
                                 .d_x = all.matrix(d_x, all.dtype),
                                 .d_weight = trains ? d_weight.tensor(all.dtype) : Tensor{}});
    if (!trains) return {download(d_x.tensor(all.dtype)), {}};
    return {download(d_x.tensor(all.dtype)), download(d_weight.tensor(all.dtype))};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RmsNormTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(RmsNormTest, RowsAreDividedByTheirRootMeanSquareAndTheirPartsSaved) {
  constexpr std::int64_t kRows = 11;  // more than a block has warps
  for (const std::int64_t cols : {7, 16, 65, 128, 516, 1600}) {
    for (const DType dtype : kDTypes) {
      for (const double offset : {0.0, 1.0}) {
        const auto x = random_values(kRows * cols, dtype, 1);
        const auto weight = random_values(cols, dtype, 2);

        const Buffers all = forward(x, weight, dtype, offset);

        const Reference expected = rms_norm(x, weight, offset);
        const double tolerance = tolerance_of(dtype);
        expect_close(download(all.out.tensor(dtype)), expected.out, 2 * tolerance);
        expect_close(download(all.rrms.tensor(DType::fp32)), expected.rrms, 1e-5);
        expect_close(download(all.normalised.tensor(all.inner())), expected.normalised,
                     tolerance_of(all.inner()));
        if (dtype != DType::fp32) {
          EXPECT_EQ(download(all.copy.tensor(DType::fp32)), x);
        }
      }
    }
  }
}

TEST_P(RmsNormTest, BackwardIsTheGradientOfForward) {
  constexpr std::int64_t kRows = 3;
  for (const std::int64_t cols : {7, 16, 33}) {
    for (const DType dtype : kDTypes) {
      for (const double offset : {0.0, 1.0}) {
        const auto x = random_values(kRows * cols, dtype, 1);
        const auto weight = random_values(cols, dtype, 2);
        const auto d_out = random_values(kRows * cols, dtype, 3);
        const Buffers all = forward(x, weight, dtype, offset);

        const Gradients gradients = backward(all, d_out);

        using Values = std::vector<double>;
        const auto by_x = [&](const Values& v) {
          return dot(rms_norm(v, weight, offset).out, d_out);
        };
        const auto by_weight = [&](const Values& v) {
          return dot(rms_norm(x, v, offset).out, d_out);
        };
        const double tolerance = 4 * tolerance_of(dtype);  // every product is rounded
        expect_close(gradients.x, numeric_gradient(by_x, x), tolerance);
        expect_close(gradients.weight, numeric_gradient(by_weight, weight), tolerance);
      }
    }
  }
}

TEST_P(RmsNormTest, BackwardOfAFrozenWeightReadsNothingThatOnlyItsGradientNeeds) {
  constexpr std::int64_t kCols = 33;
  for (const DType dtype : kDTypes) {
    for (const double offset : {0.0, 1.0}) {
      const auto x = random_values(3 * kCols, dtype, 1);
      const auto weight = random_values(kCols, dtype, 2);
      const auto d_out = random_values(3 * kCols, dtype, 3);
      const Gradients expected = backward(forward(x, weight, dtype, offset), d_out);
      Buffers all = forward(x, weight, dtype, offset);
      all.normalised = upload(std::vector<double>(x.size(), 1e3), all.inner());

      const Gradients actual = backward(all, d_out, false);

      expect_close(actual.x, expected.x, 2 * tolerance_of(dtype));
    }
  }
}

TEST_P(RmsNormTest, GradientsOfManyOrWideRowsAreSummedUp) {
  const std::int64_t shapes[][2] = {{700, 24}, {300, 5}, {3, 6000}};
  for (const auto& [rows, cols] : shapes) {
    const auto x = random_values(rows * cols, DType::fp32, 1);
    const auto d_out = random_values(rows * cols, DType::fp32, 2);
    const std::vector<double> ones(static_cast<std::size_t>(cols), 1);
    const Reference saved = rms_norm(x, ones, 0);
    const Buffers all = forward(x, ones, DType::fp32, 0);

    const Gradients gradients = backward(all, d_out);

    std::vector<double> sums(ones.size(), 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      sums[i % ones.size()] += d_out[i] * saved.normalised[i];
    }
    expect_close(gradients.weight, sums, 1e-5);
    double along_x = 0;  // a longer row has the same direction
    for (std::size_t j = 0; j < ones.size(); ++j) along_x += gradients.x[j] * x[j];
    EXPECT_NEAR(along_x, 0, 1e-2);
  }
}

}  // namespace

}  // namespace dstune::testing::rms_norm_test
