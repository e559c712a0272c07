#include <cmath>

#include "core/device/operations/attention.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::rotate_test {

namespace {

/// Heads of `size` columns, `stride` apart, of which the first 2 `half` turn.
struct Shape {
  std::int64_t sequence;
  std::int64_t heads;
  std::int64_t size;
  std::int64_t half;
  std::int64_t stride;
};

constexpr std::int64_t kBatch = 2;
// Whole heads; a part of each (GPT-NeoX, Phi), side by side with keys and values.
constexpr Shape kShapes[] = {{5, 3, 16, 8, 16}, {17, 2, 64, 32, 64}, {4, 3, 10, 2, 30}};

class RotateTest : public DeviceTest {
 protected:
  /// `in` is (kBatch * sequence, heads * stride), the result has dense heads.
  std::vector<double> rotate(const Shape& shape, const std::vector<double>& in,
                             const std::vector<double>& angles, DType dtype, bool inverse) {
    const std::int64_t rows = kBatch * shape.sequence;
    const std::int64_t cols = shape.heads * shape.size;
    const Buffer source = upload(in, dtype);
    const Buffer cos =
        upload(of_angles(angles, dtype, [](double x) { return std::cos(x); }), dtype);
    const Buffer sin =
        upload(of_angles(angles, dtype, [](double x) { return std::sin(x); }), dtype);
    const Buffer scratch = buffer(rotate_scratch(rows * cols), dtype);
    const Buffer out = buffer(rows * cols, dtype);
    device().run(Rotate{.in = as_matrix(source.tensor(dtype), rows, shape.heads * shape.stride),
                        .heads = shape.heads,
                        .head_size = shape.size,
                        .in_stride = shape.stride,
                        .cos = as_matrix(cos.tensor(dtype), shape.sequence, shape.half),
                        .sin = as_matrix(sin.tensor(dtype), shape.sequence, shape.half),
                        .inverse = inverse,
                        .scratch = scratch.tensor(dtype),
                        .out = as_matrix(out.tensor(dtype), rows, cols)});
    return download(out.tensor(dtype));
  }

  static std::vector<double> of_angles(std::vector<double> angles, DType dtype,
                                       double (*f)(double)) {
    for (double& angle : angles) angle = rounded(f(angle), dtype);
    return angles;
  }
  static std::vector<double> input(const Shape& shape, DType dtype) {
    return random_values(kBatch * shape.sequence * shape.heads * shape.stride, dtype, 1);
  }
  static std::vector<double> angles(const Shape& shape) {
    return random_values(shape.sequence * shape.half, DType::fp32, 2);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RotateTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

/// Pair (j, half + j) of each head as a complex number times e^(i angle).
std::vector<double> turned(const Shape& shape, const std::vector<double>& in,
                           const std::vector<double>& angles, double sign) {
  std::vector<double> out;
  for (std::int64_t row = 0; row < kBatch * shape.sequence; ++row) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const double* const from = in.data() + (row * shape.heads + head) * shape.stride;
      for (std::int64_t j = 0; j < shape.size; ++j) {
        if (j >= 2 * shape.half) {
          out.push_back(from[j]);
          continue;
        }
        const std::int64_t pair = j % shape.half;
        const double angle =
            sign * angles[static_cast<std::size_t>(row % shape.sequence * shape.half + pair)];
        const double a = from[pair];
        const double b = from[shape.half + pair];
        out.push_back(j < shape.half ? a * std::cos(angle) - b * std::sin(angle)
                                     : b * std::cos(angle) + a * std::sin(angle));
      }
    }
  }
  return out;
}

TEST_P(RotateTest, PairsTurnByTheAnglesOfTheirPositions) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      const auto in = input(shape, dtype);

      const auto out = rotate(shape, in, angles(shape), dtype, false);

      expect_close(out, turned(shape, in, angles(shape), 1), 4 * tolerance_of(dtype));
    }
  }
}

// A rotation's gradient is the rotation back.
TEST_P(RotateTest, TheInverseTurnsBack) {
  for (const Shape& shape : kShapes) {
    for (const DType dtype : kDTypes) {
      const auto in = input(shape, dtype);

      const auto out = rotate(shape, in, angles(shape), dtype, true);

      expect_close(out, turned(shape, in, angles(shape), -1), 4 * tolerance_of(dtype));
    }
  }
}

}  // namespace

}  // namespace dstune::testing::rotate_test
