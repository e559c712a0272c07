#include <cmath>

#include "core/device/operations/attention.hpp"
#include "tests/kernels/device/attention_case.hpp"

namespace dstune::testing::attention_dropout_test {

namespace {

class AttentionDropoutTest : public AttentionTest {
 protected:
  /// What dropout multiplies each probability with: with V = I the output is P itself.
  std::vector<double> dropout_multipliers(AttentionCase of) {
    AttentionShape& shape = of.shape;
    const std::int64_t s = shape.sequence;
    shape.head_size = s;
    std::vector<double> qkv(static_cast<std::size_t>(of.rows() * of.columns()), 0);
    for (std::int64_t row = 0; row < of.rows(); ++row) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        qkv[static_cast<std::size_t>(row * of.columns() + of.first_of(2) + head * s + row % s)] = 1;
      }
    }
    const Forward result = forward(of, upload(qkv), DType::fp32);
    const auto out = download(result.out.tensor(DType::fp32));
    std::vector<double> multipliers;
    for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
      for (std::int64_t i = 0; i < s; ++i) {
        for (std::int64_t j = 0; j < s; ++j) {
          const std::int64_t row = index / shape.heads * s + i;
          const double p =
              out[static_cast<std::size_t>(row * of.width() + index % shape.heads * s + j)];
          multipliers.push_back(p * static_cast<double>(i + 1));  // q = k = 0: P = 1 / (i + 1)
        }
      }
    }
    return multipliers;
  }

  /// What dropout multiplies each probability with, as backends agree on it.
  static std::vector<double> kept_multipliers(const AttentionShape& shape) {
    const std::int64_t s = shape.sequence;
    const ScoreGroups groups(s);
    std::vector<double> multipliers;
    for (std::int64_t head = 0; head < shape.batch * shape.heads; ++head) {
      const std::uint64_t key = make_key(shape.seed, static_cast<std::uint64_t>(head));
      for (std::int64_t i = 0; i < s; ++i) {
        for (std::int64_t j = 0; j < s; ++j) {
          const bool keeps = is_score_kept(random_bits(key, groups.index(i, j)), score_place(i, j),
                                           score_threshold(shape.dropout));
          multipliers.push_back(keeps ? 1 / (1 - shape.dropout) : 0);
        }
      }
    }
    return multipliers;
  }

  void backward_uses_the_mask(const AttentionCase& of) {
    const auto multipliers = dropout_multipliers(of);
    const auto qkv = random_values(of.rows() * of.columns(), DType::fp32, 1);
    const auto d_out = random_values(of.rows() * of.width(), DType::fp32, 2);
    const Buffer qkv_buffer = upload(qkv);
    const Forward saved = forward(of, qkv_buffer, DType::fp32);

    const auto actual = backward(of, d_out, qkv_buffer, saved, DType::fp32);

    expect_close(download(saved.out.tensor(DType::fp32)), attend(of, qkv, multipliers).out, 1e-5);
    const auto expected = numeric_gradient(
        [&](const std::vector<double>& v) { return dot(attend(of, v, multipliers).out, d_out); },
        qkv);
    expect_close(actual, expected, 1e-5);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionDropoutTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(AttentionDropoutTest, KeepsItsShareAndScalesIt) {
  const AttentionCase one = causal(2, 65, 2, 8, 0.25, 9);

  const auto multipliers = dropout_multipliers(one);

  int kept = 0;
  int visible = 0;
  for (std::int64_t element = 0; element < 4 * 65 * 65; ++element) {
    if (element % 65 > element / 65 % 65) continue;
    const double multiplier = multipliers[static_cast<std::size_t>(element)];
    ASSERT_TRUE(multiplier == 0 || std::fabs(multiplier - 1 / 0.75) < 1e-5) << multiplier;
    kept += multiplier > 0 ? 1 : 0;
    ++visible;
  }
  EXPECT_NEAR(kept / static_cast<double>(visible), 0.75, 0.02);
  EXPECT_EQ(multipliers, dropout_multipliers(one));
}

TEST_P(AttentionDropoutTest, FollowsFromTheSeedTheHeadAndThePlace) {
  const AttentionCase one = causal(2, 20, 2, 8, 0.3, 11);

  const auto multipliers = dropout_multipliers(one);

  const auto expected = kept_multipliers(one.shape);
  for (std::size_t element = 0; element < multipliers.size(); ++element) {
    if (element % 20 > element / 20 % 20) continue;
    ASSERT_EQ(multipliers[element] > 0, expected[element] > 0) << element;
  }
}

TEST_P(AttentionDropoutTest, OfEveryTypeIsThatOfTheSeed) {
  for (const AttentionCase& one : {causal(2, 37, 2, 8, 0.3, 5), causal(1, 150, 1, 64, 0.1, 6),
                                   causal(1, 75, 1, 100, 0.5, 7)}) {
    expect_directional_derivatives(one, kept_multipliers(one.shape));
  }
}

TEST_P(AttentionDropoutTest, OfSharedKeysOfAllKeysAndOfWindowsIsThatOfTheSeed) {
  AttentionCase all = causal(1, 40, 2, 8, 0.3, 5);
  all.shape.kv_heads = 1;
  all.shape.causal = false;
  AttentionCase window = causal(1, 150, 2, 64, 0.3, 5);
  window.shape.kv_heads = 1;
  window.shape.window = 30;
  for (const AttentionCase& one : {all, window}) {
    expect_directional_derivatives(one, kept_multipliers(one.shape));
  }
}

TEST_P(AttentionDropoutTest, BackwardUsesTheMaskOfForward) {
  backward_uses_the_mask(causal(2, 7, 2, 4, 0.4, 21));
  backward_uses_the_mask(causal(1, 5, 1, 136, 0.4, 21));
}

}  // namespace

}  // namespace dstune::testing::attention_dropout_test
