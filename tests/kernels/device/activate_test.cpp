#include <cmath>
#include <numbers>

#include "core/device/operations/activations.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::activate_test {

namespace {

constexpr Activation kAll[] = {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                               Activation::silu, Activation::tanh,      Activation::sigmoid};

// torch.nn.functional's definitions.
double value_of(Activation kind, double x) {
  switch (kind) {
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
    case Activation::affine:
      break;
  }
  return 1 / (1 + std::exp(-x));
}

class ActivateTest : public DeviceTest {
 protected:
  Buffer forward(Activation kind, const Buffer& x, DType dtype) {
    Buffer out = buffer(x.tensor(dtype).numel, dtype);
    device().run(Activate{.kind = kind, .x = x.tensor(dtype), .out = out.tensor(dtype)});
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ActivateTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

/// -6 to 6: both tails and the middle; none so near to 0 that relu has no difference there.
std::vector<double> inputs(std::int64_t count, DType dtype) {
  auto values = random_values(count, dtype, 1);
  for (double& value : values) value = rounded(6 * value + (value < 0 ? -1e-2 : 1e-2), dtype);
  return values;
}

TEST_P(ActivateTest, ForwardIsTheDefinition) {
  for (const Activation kind : kAll) {
    for (const std::int64_t length : {std::int64_t{1}, std::int64_t{17}, std::int64_t{4099}}) {
      for (const DType dtype : kDTypes) {
        const auto x = inputs(length, dtype);
        std::vector<double> expected;
        for (const double value : x) expected.push_back(value_of(kind, value));

        const Buffer out = forward(kind, upload(x, dtype), dtype);

        SCOPED_TRACE(static_cast<int>(kind));
        expect_close(download(out.tensor(dtype)), expected, tolerance_of(dtype));
      }
    }
  }
}

TEST_P(ActivateTest, BackwardIsTheGradientOfForwardInPlaceToo) {
  for (const Activation kind : kAll) {
    for (const DType dtype : kDTypes) {
      const auto x = inputs(1031, dtype);
      const auto d_out = random_values(1031, dtype, 2);
      const Buffer x_buffer = upload(x, dtype);
      const Buffer d = upload(d_out, dtype);
      const Buffer out = forward(kind, x_buffer, dtype);

      device().run(ActivateBackward{.kind = kind,
                                    .d_out = d.tensor(dtype),
                                    .saved = (saves_result(kind) ? out : x_buffer).tensor(dtype),
                                    .d_x = d.tensor(dtype)});

      const auto actual = download(d.tensor(dtype));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto f = [&](const std::vector<double>& v) { return value_of(kind, v[0]); };
        const double expected = d_out[i] * numeric_gradient(f, {x[i]})[0];
        // A result that is saved is rounded as well.
        ASSERT_NEAR(actual[i], expected, 4 * tolerance_of(dtype))
            << static_cast<int>(kind) << " at " << x[i];
      }
    }
  }
}

TEST_P(ActivateTest, AffineIsAFactorAndAnAddend) {
  for (const DType dtype : kDTypes) {
    const auto x = inputs(65, dtype);
    std::vector<double> expected;
    for (const double value : x) expected.push_back(1.5 * value - 0.25);
    const Buffer buffer = upload(x, dtype);

    device().run(Activate{.kind = Activation::affine,
                          .x = buffer.tensor(dtype),
                          .out = buffer.tensor(dtype),
                          .factor = 1.5,
                          .addend = -0.25});

    expect_close(download(buffer.tensor(dtype)), expected, tolerance_of(dtype));
  }
}

TEST_P(ActivateTest, LargeValuesReachTheirLimits) {
  const std::vector<double> x = {50, 1000, -50, -1000};
  for (const DType dtype : kDTypes) {
    for (const Activation kind : {Activation::gelu, Activation::gelu_tanh, Activation::relu}) {
      EXPECT_EQ(download(forward(kind, upload(x, dtype), dtype).tensor(dtype)),
                (std::vector<double>{50, 1000, 0, 0}));
    }
    EXPECT_EQ(download(forward(Activation::tanh, upload(x, dtype), dtype).tensor(dtype)),
              (std::vector<double>{1, 1, -1, -1}));
    const auto silu = download(forward(Activation::silu, upload(x, dtype), dtype).tensor(dtype));
    EXPECT_EQ(silu[1], 1000);
    EXPECT_NEAR(silu[2], 0, 1e-12);
    EXPECT_EQ(silu[3], 0);
  }
}

TEST_P(ActivateTest, NanIsNotHidden) {
  const Buffer x = upload(std::vector<double>(17, std::nan("")));
  for (const Activation kind : kAll) {
    const auto out = download(forward(kind, x, DType::fp32).tensor(DType::fp32));
    EXPECT_TRUE(std::isnan(out.front()) && std::isnan(out.back())) << static_cast<int>(kind);
  }
}

}  // namespace

}  // namespace dstune::testing::activate_test
