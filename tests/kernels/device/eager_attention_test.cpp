#include <cmath>
#include <limits>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/softmax.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::eager_attention_test {

namespace {

/// What eager attention is made of.
class EagerAttentionTest : public DeviceTest {
 protected:
  /// softmax of (rows, columns) and its gradient, in these types.
  void expect_softmax(std::int64_t rows, std::int64_t columns, DType in, DType out);
};
INSTANTIATE_TEST_SUITE_P(Devices, EagerAttentionTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr AttentionShape kShape{
    .batch = 2, .sequence = 5, .heads = 4, .kv_heads = 2, .head_size = 3};

TEST_P(EagerAttentionTest, ABatchOfProductsIsEachOfThem) {
  const std::int64_t m = 5, n = 7, k = 3, count = 4;
  for (const DType dtype : kDTypes) {
    const auto a = random_values(count * m * k, dtype, 1);
    const auto b = random_values(k * count * n, dtype, 2);  // side by side
    const Buffer a_buffer = upload(a, dtype);
    const Buffer b_buffer = upload(b, dtype);
    const Buffer c = buffer(count * m * n, dtype);

    device().run(Gemm{.a = as_matrix(a_buffer.tensor(dtype).slice(0, m * k), m, k),
                      .b = {b_buffer.data(), k, n, dtype, count * n},
                      .c = as_matrix(c.tensor(dtype).slice(0, m * n), m, n),
                      .batch = {.count = count, .a_step = m * k, .b_step = n, .c_step = m * n}});

    std::vector<double> expected;
    for (std::int64_t at = 0; at < count * m * n; ++at) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(at / n * k + l)] *
               b[static_cast<std::size_t>(l * count * n + at / (m * n) * n + at % n)];
      }
      expected.push_back(sum);
    }
    expect_close(download(c.tensor(dtype)), expected, tolerance_of(dtype));
  }
}

TEST_P(EagerAttentionTest, HeadsAreStackedAsOftenAsTheyServeAndSummedBack) {
  const std::int64_t width = 2 * 3;
  for (const DType dtype : kDTypes) {
    const auto in = random_values(10 * width, dtype, 1);
    const Buffer in_buffer = upload(in, dtype);
    const Buffer stacked = buffer(10 * 4 * 3, dtype);
    const Buffer back = buffer(10 * width, dtype);
    const Heads heads{as_matrix(in_buffer.tensor(dtype), 10, width), 3};
    const Matrix stack = as_matrix(stacked.tensor(dtype), 40, 3);

    device().run(StackHeads{.shape = kShape, .in = heads, .heads = 2, .out = stack});
    device().run(SpreadHeads{.shape = kShape,
                             .in = stack,
                             .out = {as_matrix(back.tensor(dtype), 10, width), 3},
                             .heads = 2});

    std::vector<double> expected;
    for (std::int64_t at = 0; at < 40 * 3; ++at) {
      const std::int64_t head = at / 15 % 4;
      const std::int64_t row = at / 60 * 5 + at / 3 % 5;
      expected.push_back(in[static_cast<std::size_t>(row * width + head / 2 * 3 + at % 3)]);
    }
    EXPECT_EQ(download(stacked.tensor(dtype)), expected);
    auto doubled = in;
    for (double& value : doubled) value *= 2;
    EXPECT_EQ(download(back.tensor(dtype)), doubled);
  }
}

TEST_P(EagerAttentionTest, TheMaskHidesWhatAQueryDoesNotSee) {
  AttentionShape shape = kShape;
  shape.window = 2;
  for (const DType dtype : kDTypes) {
    const auto scores = random_values(2 * 4 * 25, dtype, 1);
    const Buffer scores_buffer = upload(scores, dtype);
    const Buffer mask = buffer(2 * 25, dtype);
    const Buffer out = buffer(2 * 4 * 25, dtype);

    device().run(FillMask{shape, mask.tensor(dtype)});
    device().run(
        AddMask{shape, scores_buffer.tensor(dtype), mask.tensor(dtype), out.tensor(dtype)});

    const auto masked = download(out.tensor(dtype));
    for (std::size_t at = 0; at < masked.size(); ++at) {
      const auto query = static_cast<int>(at / 5 % 5);
      const auto key = static_cast<int>(at % 5);
      if (key == query || key + 1 == query) {
        EXPECT_EQ(masked[at], scores[at]);
      } else {
        EXPECT_LT(masked[at], -6e4);
      }
    }
  }
}

TEST_P(EagerAttentionTest, AFactorGoesToAnotherTensor) {
  for (const DType dtype : kDTypes) {
    const auto in = random_values(1030, dtype, 1);
    const Buffer in_buffer = upload(in, dtype);
    const Buffer out = buffer(1030, dtype);

    device().run(ScaleTo{in_buffer.tensor(dtype), 0.125, out.tensor(dtype)});

    auto expected = in;
    for (double& value : expected) value *= 0.125;
    EXPECT_EQ(download(out.tensor(dtype)), expected);
    EXPECT_EQ(download(in_buffer.tensor(dtype)), in);
  }
}

void EagerAttentionTest::expect_softmax(std::int64_t rows, std::int64_t columns, DType in,
                                        DType out) {
  const auto scores = random_values(rows * columns, in, 1);
  const auto d_probs = random_values(rows * columns, out, 2);
  const Buffer scores_buffer = upload(scores, in);
  const Buffer d_probs_buffer = upload(d_probs, out);
  const Buffer probs = buffer(rows * columns, out);
  const Buffer d_scores = buffer(rows * columns, in);
  const auto matrix = [&](const Buffer& of, DType dtype) {
    return as_matrix(of.tensor(dtype), rows, columns);
  };

  device().run(Softmax{matrix(scores_buffer, in), matrix(probs, out)});
  device().run(
      SoftmaxBackward{matrix(d_probs_buffer, out), matrix(probs, out), matrix(d_scores, in)});

  const auto actual = download(probs.tensor(out));
  std::vector<double> expected;
  std::vector<double> gradient;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t first = static_cast<std::size_t>(row * columns);
    const auto count = static_cast<std::size_t>(columns);
    double sum = 0;
    double mean = 0;
    for (std::size_t j = first; j < first + count; ++j) sum += std::exp(scores[j]);
    for (std::size_t j = first; j < first + count; ++j) mean += actual[j] * d_probs[j];
    for (std::size_t j = first; j < first + count; ++j) {
      expected.push_back(std::exp(scores[j]) / sum);
      gradient.push_back(actual[j] * (d_probs[j] - mean));
    }
  }
  expect_close(actual, expected, tolerance_of(out));
  expect_close(download(d_scores.tensor(in)), gradient, tolerance_of(in));
}

TEST_P(EagerAttentionTest, SoftmaxAndItsGradient) {
  for (const std::int64_t columns : {1, 7, 33, 129, 1030, 2048, 2049}) {
    for (const DType dtype : kDTypes) expect_softmax(3, columns, dtype, dtype);
  }
  expect_softmax(3, 33, DType::fp16, DType::fp32);
}

TEST_P(EagerAttentionTest, SoftmaxOfWhatIsMaskedIsZero) {
  const double lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  const Buffer scores = upload({1, lowest, 1, lowest});
  const Buffer probs = buffer(4);

  device().run(Softmax{as_matrix(scores.tensor(DType::fp32), 1, 4),
                       as_matrix(probs.tensor(DType::fp32), 1, 4)});

  EXPECT_EQ(download(probs.tensor(DType::fp32)), (std::vector<double>{0.5, 0, 0.5, 0}));
}

}  // namespace

}  // namespace dstune::testing::eager_attention_test
