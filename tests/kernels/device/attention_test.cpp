#include "core/device/operations/attention.hpp"

#include <string>

#include "tests/kernels/device/attention_case.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing::attention_test {

namespace {

// What families ask for beside the past of each head: heads that share a k and v, all keys, windows
// shorter and longer than blocks, capped scores, a scale, and heads of which q, k and v touch.
AttentionCase grouped(std::int64_t sequence, std::int64_t heads, std::int64_t kv_heads,
                      std::int64_t head_size) {
  AttentionCase result = causal(1, sequence, heads, head_size);
  result.shape.kv_heads = kv_heads;
  return result;
}

AttentionCase of_all_keys(AttentionCase result) {
  result.shape.causal = false;
  return result;
}

AttentionCase with_window(AttentionCase result, std::int64_t window) {
  result.shape.window = window;
  return result;
}

AttentionCase capped(AttentionCase result, double softcap, double scale) {
  result.shape.softcap = softcap;
  result.shape.scale = scale;
  return result;
}

AttentionCase interleaved(AttentionCase result) {
  result.interleaved = true;
  return result;
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(AttentionTest, ForwardAgreesWithSoftmaxOverThePast) {
  const AttentionCase cases[] = {causal(1, 1, 1, 8),   causal(2, 7, 3, 4),    causal(1, 17, 2, 16),
                                 causal(2, 65, 1, 5),  causal(1, 129, 2, 8),  causal(1, 300, 1, 16),
                                 causal(1, 70, 2, 64), causal(1, 50, 1, 100), causal(2, 40, 1, 128),
                                 causal(1, 20, 2, 136)};
  for (const AttentionCase& one : cases) expect_forward(one);
}

TEST_P(AttentionTest, ScoresThatGrowWithTheKeysAreNormalisedAgain) {
  const AttentionCase one = causal(1, 200, 1, 16);
  for (const DType dtype : kDTypes) {
    auto qkv = random_values(one.rows() * one.columns(), dtype, 1);
    for (std::int64_t row = 0; row < one.rows(); ++row) {
      for (std::int64_t col = 0; col < 32; ++col) {
        auto& value = qkv[static_cast<std::size_t>(row * 48 + col)];
        value = col < 16 ? 1 : rounded(value + static_cast<double>(row) / 8, dtype);
      }
    }

    const Forward result = forward(one, upload(qkv, dtype), dtype);

    const Attended expected = attend(one, qkv);
    expect_close(download(result.out.tensor(dtype)), expected.out,
                 dtype == DType::fp32 ? 1e-4 : tolerance_of(dtype));  // scores reach 100
    expect_close(download(result.lse.tensor(DType::fp32)), expected.lse, 1e-5);
  }
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  const AttentionCase one = causal(1, 5, 1, 4);
  auto qkv = random_values(5 * 12, DType::fp32, 1);
  for (double& value : qkv) value *= 100;

  const Forward result = forward(one, upload(qkv), DType::fp32);

  EXPECT_FALSE(test::has_inf_or_nan(device(), result.out.tensor(DType::fp32)));
}

TEST_P(AttentionTest, BackwardIsTheGradientOfForward) {
  for (const AttentionCase& one : {causal(1, 1, 1, 8), causal(2, 7, 2, 4), causal(1, 17, 1, 3)}) {
    expect_gradient(one);
  }
}

TEST_P(AttentionTest, BackwardOfWhatFamiliesAskForIsTheGradientToo) {
  const AttentionCase cases[] = {
      grouped(9, 4, 2, 4),
      of_all_keys(causal(2, 5, 2, 4)),
      with_window(grouped(9, 3, 1, 4), 3),
      with_window(of_all_keys(causal(1, 9, 1, 4)), 3),
      capped(grouped(9, 2, 1, 4), 0.5, 0.7),
      capped(with_window(of_all_keys(causal(1, 6, 1, 136)), 2), 0.5, 0.1),
      interleaved(causal(2, 5, 2, 4))};
  for (const AttentionCase& one : cases) {
    SCOPED_TRACE(&one - cases);
    expect_gradient(one);
  }
}

TEST_P(AttentionTest, BackwardOverSeveralBlocksIsTheSumOfDirectionalDerivatives) {
  const AttentionCase cases[] = {causal(1, 260, 2, 8), causal(1, 90, 1, 64), causal(1, 70, 1, 120),
                                 causal(1, 20, 1, 136)};
  for (const AttentionCase& one : cases) expect_directional_derivatives(one);
}

TEST_P(AttentionTest, SeveralBlocksOfWhatFamiliesAskFor) {
  const AttentionCase cases[] = {with_window(grouped(300, 2, 1, 8), 20),
                                 with_window(causal(1, 200, 1, 8), 130),
                                 with_window(of_all_keys(causal(1, 150, 1, 8)), 40),
                                 of_all_keys(grouped(140, 2, 1, 64)),
                                 with_window(grouped(75, 3, 1, 100), 33),
                                 interleaved(of_all_keys(causal(2, 40, 2, 24)))};
  for (const AttentionCase& one : cases) {
    SCOPED_TRACE(&one - cases);
    expect_directional_derivatives(one);
  }
}

}  // namespace

}  // namespace dstune::testing::attention_test
