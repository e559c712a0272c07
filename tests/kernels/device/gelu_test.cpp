#include <cmath>
#include <numbers>

#include "core/device/operations/activations.hpp"
#include "tests/kernels/device/device_test.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing::gelu_test {

namespace {

class GeluTest : public DeviceTest {
 protected:
  struct Buffers {
    Buffer tanh;
    Buffer half_x;
    Buffer one_plus_tanh;
    Buffer out;

    GeluSaved saved(DType dtype) const {
      return {tanh.tensor(dtype), half_x.tensor(dtype), one_plus_tanh.tensor(dtype)};
    }
  };

  Buffers forward(const Buffer& x, DType dtype) {
    const std::int64_t count = x.tensor(dtype).numel;
    Buffers buffers{buffer(count, dtype), buffer(count, dtype), buffer(count, dtype),
                    buffer(count, dtype)};
    device().run(GeluNew{
        .x = x.tensor(dtype), .saved = buffers.saved(dtype), .out = buffers.out.tensor(dtype)});
    return buffers;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, GeluTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

double tanh_of(double x) {
  return std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x));
}

/// -6 to 6: both tails and the middle.
std::vector<double> inputs(std::int64_t count, DType dtype) {
  auto values = random_values(count, dtype, 1);
  for (double& value : values) value = rounded(6 * value, dtype);
  return values;
}

std::vector<double> map(std::vector<double> values, double (*f)(double)) {
  for (double& value : values) value = f(value);
  return values;
}

TEST_P(GeluTest, ForwardAgreesWithTheDefinitionAndSavesItsParts) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto x = inputs(length, dtype);
      const Buffer x_buffer = upload(x, dtype);

      const Buffers buffers = forward(x_buffer, dtype);

      const double tolerance = tolerance_of(dtype);
      expect_close(download(buffers.out.tensor(dtype)),
                   map(x, [](double v) { return 0.5 * v * (1 + tanh_of(v)); }), tolerance);
      expect_close(download(buffers.tanh.tensor(dtype)), map(x, tanh_of), tolerance);
      expect_close(download(buffers.half_x.tensor(dtype)), map(x, [](double v) { return v / 2; }),
                   tolerance);
      const auto one_plus_tanh = map(x, [](double v) { return 1 + tanh_of(v); });
      const auto actual = download(buffers.one_plus_tanh.tensor(dtype));
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(actual[i], one_plus_tanh[i], 2 * tolerance);
      }
    }
  }
}

TEST_P(GeluTest, BackwardIsTheGradientOfForward) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto x = inputs(length, dtype);
      const auto d_out = random_values(length, dtype, 2);
      const Buffer x_buffer = upload(x, dtype);
      const Buffer d_out_buffer = upload(d_out, dtype);
      const Buffer d_x = buffer(length, dtype);
      const Buffers buffers = forward(x_buffer, dtype);

      device().run(GeluNewBackward{.d_out = d_out_buffer.tensor(dtype),
                                   .x = x_buffer.tensor(dtype),
                                   .saved = buffers.saved(dtype),
                                   .d_x = d_x.tensor(dtype)});

      std::vector<double> expected(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto gelu = [](const std::vector<double>& v) {
          return 0.5 * v[0] * (1 + tanh_of(v[0]));
        };
        expected[i] = d_out[i] * numeric_gradient(gelu, {x[i]})[0];
      }
      const auto actual = download(d_x.tensor(dtype));
      for (std::size_t i = 0; i < x.size(); ++i) {  // saved values are rounded as well
        EXPECT_NEAR(actual[i], expected[i], 8 * tolerance_of(dtype)) << x[i];
      }
    }
  }
}

TEST_P(GeluTest, LargeValuesStayAsTheyAreOrAreZero) {
  for (const DType dtype : kDTypes) {
    const Buffer x = upload({41, 1000, -41, -1000}, dtype);

    const Buffers buffers = forward(x, dtype);

    EXPECT_EQ(download(buffers.out.tensor(dtype)), (std::vector<double>{41, 1000, 0, 0}));
  }
}

TEST_P(GeluTest, NanIsNotHidden) {
  const Buffer x = upload(std::vector<double>(17, std::nan("")));

  const Buffers buffers = forward(x, DType::fp32);

  EXPECT_TRUE(test::has_inf_or_nan(device(), buffers.out.tensor(DType::fp32).slice(0, 1)));
  EXPECT_TRUE(test::has_inf_or_nan(device(), buffers.out.tensor(DType::fp32).slice(16, 1)));
}

}  // namespace

}  // namespace dstune::testing::gelu_test
