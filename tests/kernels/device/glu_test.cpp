#include <cmath>
#include <cstdint>
#include <vector>

#include "core/device/operations/activations.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::glu_test {

namespace {

class GluTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, GluTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

double activated(Activation kind, double x) {
  return kind == Activation::silu ? x / (1 + std::exp(-x)) : std::tanh(x);
}

// silu differentiates by what comes in, tanh by what comes out.
TEST_P(GluTest, HalvesAreGateAndValueAndGradientsAreTheirDifferences) {
  constexpr std::int64_t kRows = 3;
  constexpr std::int64_t kCols = 5;
  for (const Activation kind : {Activation::silu, Activation::tanh}) {
    const auto x = random_values(kRows * 2 * kCols, DType::fp32, 1);
    const auto weights = random_values(kRows * kCols, DType::fp32, 2);
    const auto product_of = [&](const std::vector<double>& in) {
      std::vector<double> out;
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kCols; ++j) {
          const auto gate = static_cast<std::size_t>(i * 2 * kCols + j);
          out.push_back(activated(kind, in[gate]) * in[gate + kCols]);
        }
      }
      return out;
    };
    const Buffer gate_up = upload(x);
    const Matrix both = as_matrix(gate_up.tensor(DType::fp32), kRows, 2 * kCols);
    const Buffer result = buffer(kRows * kCols);
    const Buffer product = buffer(kRows * kCols);
    const Buffer d_product = upload(weights);
    const Buffer d_up = buffer(kRows * kCols);
    const Buffer d_gate = buffer(kRows * kCols);

    device().run(Glu{kind, both, result.tensor(DType::fp32), product.tensor(DType::fp32)});
    device().run(GluBackward{.kind = kind,
                             .d_product = d_product.tensor(DType::fp32),
                             .gate_up = both,
                             .activated = result.tensor(DType::fp32),
                             .d_up = d_up.tensor(DType::fp32),
                             .d_gate = d_gate.tensor(DType::fp32)});

    expect_close(download(product.tensor(DType::fp32)), product_of(x), 1e-5);
    const auto loss = [&](const std::vector<double>& at) { return dot(product_of(at), weights); };
    const auto numeric = numeric_gradient(loss, x);
    const auto gates = download(d_gate.tensor(DType::fp32));
    const auto ups = download(d_up.tensor(DType::fp32));
    std::vector<double> together;
    for (std::size_t i = 0; i < gates.size(); i += kCols) {
      const auto first = static_cast<std::ptrdiff_t>(i);
      together.insert(together.end(), gates.begin() + first, gates.begin() + first + kCols);
      together.insert(together.end(), ups.begin() + first, ups.begin() + first + kCols);
    }
    expect_close(together, numeric, 1e-4);
  }
}

TEST_P(GluTest, TypesOf16BitsAreRoundedAfterEveryKernel) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    const auto x = random_values(2 * 7, dtype, 1);
    const Buffer gate_up = upload(x, dtype);
    const Buffer result = buffer(7, dtype);
    const Buffer product = buffer(7, dtype);

    device().run(Glu{Activation::relu, as_matrix(gate_up.tensor(dtype), 1, 14),
                     result.tensor(dtype), product.tensor(dtype)});

    std::vector<double> expected;
    for (std::size_t i = 0; i < 7; ++i) {
      expected.push_back(rounded(std::max(x[i], 0.0) * x[i + 7], dtype));
    }
    EXPECT_EQ(download(product.tensor(dtype)), expected);
  }
}

}  // namespace

}  // namespace dstune::testing::glu_test
