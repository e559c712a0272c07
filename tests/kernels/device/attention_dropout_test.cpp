#include <algorithm>
#include <cmath>

#include "core/device/operations/attention.hpp"
#include "tests/kernels/device/attention_case.hpp"

namespace dstune::testing::attention_dropout_test {

namespace {

class AttentionDropoutTest : public AttentionTest {
 protected:
  /// What dropout multiplies each probability with on this device, (batch * heads, s, s); 0 for
  /// keys that are not seen. Where V has the identity in the rows of some keys, the output is their
  /// probabilities, which are equal for all that a query sees, since q = k = 0.
  std::vector<double> dropout_multipliers(const AttentionCase& of, DType dtype = DType::fp32) {
    const AttentionShape& shape = of.shape;
    const std::int64_t s = shape.sequence;
    const std::int64_t size = shape.head_size;
    std::vector<double> multipliers(static_cast<std::size_t>(shape.batch * shape.heads * s * s));
    for (std::int64_t first = 0; first < s; first += size) {
      const auto out =
          download(forward(of, upload(identity_of(of, first), dtype), dtype).out.tensor(dtype));
      for (std::int64_t query = 0; query < shape.batch * shape.heads * s; ++query) {
        const std::int64_t index = query / s;
        const std::int64_t row = index / shape.heads * s + query % s;
        for (std::int64_t key = first; key < std::min(first + size, s); ++key) {
          const auto place = row * of.width() + index % shape.heads * size + key - first;
          multipliers[static_cast<std::size_t>(query * s + key)] =
              out[static_cast<std::size_t>(place)] * static_cast<double>(seen_by(shape, query % s));
        }
      }
    }
    return multipliers;
  }

  /// q = k = 0, and V with the identity in the rows of the keys from `first` on, of every head.
  static std::vector<double> identity_of(const AttentionCase& of, std::int64_t first) {
    const AttentionShape& shape = of.shape;
    std::vector<double> qkv(static_cast<std::size_t>(of.rows() * of.columns()), 0);
    for (std::int64_t row = 0; row < of.rows(); ++row) {
      const std::int64_t column = row % shape.sequence - first;
      if (column < 0 || column >= shape.head_size) continue;
      for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
        const auto place = row * of.columns() + of.first_of(2) + head * shape.head_size + column;
        qkv[static_cast<std::size_t>(place)] = 1;
      }
    }
    return qkv;
  }

  static std::int64_t seen_by(const AttentionShape& shape, std::int64_t query) {
    return std::min(query + shape.ahead(), shape.sequence - 1) -
           std::max<std::int64_t>(query - shape.back(), 0) + 1;
  }

  /// Whether backends agree on what is dropped: a library's kernels choose by themselves.
  bool drops_by_seed(DType dtype) const { return !GetParam().is_real_gpu || dtype == DType::fp32; }

  /// What each is multiplied with by the seed, where backends agree on it; else as it is found, to
  /// the last bit.
  std::vector<double> multipliers_for(const AttentionCase& of, DType dtype) {
    if (drops_by_seed(dtype)) return kept_multipliers(of.shape);
    std::vector<double> found = dropout_multipliers(of, dtype);
    for (double& each : found) each = each > 0 ? 1 / (1 - of.shape.dropout) : 0;
    return found;
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
  for (const DType dtype : kDTypes) {
    for (const std::int64_t size : {std::int64_t{8}, std::int64_t{64}, std::int64_t{256}}) {
      const AttentionCase one = causal(2, 65, 2, size, 0.25, 9);

      const auto multipliers = dropout_multipliers(one, dtype);

      int kept = 0;
      int visible = 0;
      for (std::int64_t element = 0; element < 4 * 65 * 65; ++element) {
        if (element % 65 > element / 65 % 65) continue;
        const double multiplier = multipliers[static_cast<std::size_t>(element)];
        ASSERT_TRUE(multiplier == 0 || std::fabs(multiplier - 1 / 0.75) < 2 * tolerance_of(dtype))
            << multiplier << " of " << size << " columns";
        kept += multiplier > 0 ? 1 : 0;
        ++visible;
      }
      EXPECT_NEAR(kept / static_cast<double>(visible), 0.75, 0.025) << size;  // five deviations
      EXPECT_EQ(multipliers, dropout_multipliers(one, dtype));
    }
  }
}

TEST_P(AttentionDropoutTest, DiffersByTheSeedAndTheHead) {
  for (const DType dtype : kDTypes) {
    AttentionCase one = causal(1, 64, 2, 64, 0.5, 9);
    const auto multipliers = dropout_multipliers(one, dtype);
    one.shape.seed = 10;
    const auto others = dropout_multipliers(one, dtype);

    constexpr std::size_t kOfHead = std::size_t{64} * 64;
    int by_seed = 0;
    int by_head = 0;
    for (std::size_t element = 0; element < kOfHead; ++element) {
      by_seed += (multipliers[element] > 0) != (others[element] > 0) ? 1 : 0;
      by_head += (multipliers[element] > 0) != (multipliers[kOfHead + element] > 0) ? 1 : 0;
    }
    constexpr int kVisible = 64 * 65 / 2;
    EXPECT_NEAR(by_seed, kVisible / 2, 115);  // five deviations
    EXPECT_NEAR(by_head, kVisible / 2, 115);
  }
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

TEST_P(AttentionDropoutTest, OfEveryTypeIsTheSameInBothPasses) {
  for (const AttentionCase& one : {causal(2, 37, 2, 8, 0.3, 5), causal(1, 150, 1, 64, 0.1, 6),
                                   causal(1, 75, 1, 100, 0.5, 7)}) {
    for (const DType dtype : kDTypes) {
      expect_directional_derivatives(one, dtype, multipliers_for(one, dtype));
    }
  }
}

TEST_P(AttentionDropoutTest, OfSharedKeysOfAllKeysAndOfWindowsIsTheSameInBothPasses) {
  AttentionCase all = causal(1, 40, 2, 8, 0.3, 5);
  all.shape.kv_heads = 1;
  all.shape.causal = false;
  AttentionCase window = causal(1, 150, 2, 64, 0.3, 5);
  window.shape.kv_heads = 1;
  window.shape.window = 30;
  for (const AttentionCase& one : {all, window}) {
    for (const DType dtype : kDTypes) {
      expect_directional_derivatives(one, dtype, multipliers_for(one, dtype));
    }
  }
}

TEST_P(AttentionDropoutTest, BackwardUsesTheMaskOfForward) {
  backward_uses_the_mask(causal(2, 7, 2, 4, 0.4, 21));
  backward_uses_the_mask(causal(1, 5, 1, 136, 0.4, 21));
}

}  // namespace

}  // namespace dstune::testing::attention_dropout_test
