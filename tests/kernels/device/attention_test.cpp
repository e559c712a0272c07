#include "core/device/operations/attention.hpp"

#include <cmath>

#include "core/device/score_dropout.hpp"
#include "tests/kernels/device/device_test.hpp"
#include "tests/support/numbers.hpp"

namespace dstune::testing {

namespace {

struct Reference {
  std::vector<double> out;
  std::vector<double> lse;
};

/// `multipliers` (batch * heads, s, s) of the probabilities; empty: all 1.
Reference attention(const AttentionShape& shape, const std::vector<double>& qkv,
                    const std::vector<double>& multipliers = {}) {
  const std::int64_t s = shape.sequence;
  const std::int64_t d = shape.head_size;
  const std::int64_t h = shape.heads * d;
  const auto at = [&](std::int64_t row, std::int64_t col) {
    return qkv[static_cast<std::size_t>(row * 3 * h + col)];
  };
  Reference result;
  result.out.assign(static_cast<std::size_t>(shape.batch * s * h), 0);
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const std::int64_t first = index / shape.heads * s;
    const std::int64_t col = index % shape.heads * d;
    for (std::int64_t i = 0; i < s; ++i) {
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::int64_t l = 0; l < d; ++l) {
          score += at(first + i, col + l) * at(first + j, h + col + l);
        }
        p.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
        sum += p.back();
      }
      result.lse.push_back(std::log(sum));
      for (std::int64_t j = 0; j <= i; ++j) {
        const double multiplier =
            multipliers.empty() ? 1
                                : multipliers[static_cast<std::size_t>((index * s + i) * s + j)];
        for (std::int64_t l = 0; l < d; ++l) {
          result.out[static_cast<std::size_t>((first + i) * h + col + l)] +=
              p[static_cast<std::size_t>(j)] / sum * multiplier * at(first + j, 2 * h + col + l);
        }
      }
    }
  }
  return result;
}

class AttentionTest : public DeviceTest {
 protected:
  static std::int64_t width(const AttentionShape& shape) { return shape.heads * shape.head_size; }
  static std::int64_t rows(const AttentionShape& shape) { return shape.batch * shape.sequence; }

  struct Forward {
    Buffer lse;
    Buffer out;
  };

  Forward forward(const AttentionShape& shape, const Buffer& qkv, DType dtype) {
    const std::int64_t h = width(shape);
    Forward result{buffer(shape.batch * shape.heads * shape.sequence),
                   buffer(rows(shape) * h, dtype)};
    const Buffer workspace = buffer(device().attention_workspace(shape));
    device().run(Attention{.shape = shape,
                           .qkv = as_matrix(qkv.tensor(dtype), rows(shape), 3 * h),
                           .lse = result.lse.tensor(DType::fp32),
                           .workspace = workspace.tensor(DType::fp32),
                           .out = as_matrix(result.out.tensor(dtype), rows(shape), h)});
    return result;
  }

  std::vector<double> backward(const AttentionShape& shape, const std::vector<double>& d_out,
                               const Buffer& qkv, const Forward& saved, DType dtype) {
    const std::int64_t h = width(shape);
    const Buffer d_out_buffer = upload(d_out, dtype);
    const Buffer d_qkv = buffer(rows(shape) * 3 * h, dtype);
    const Buffer workspace = buffer(device().attention_workspace(shape));
    device().run(AttentionBackward{.shape = shape,
                                   .d_out = as_matrix(d_out_buffer.tensor(dtype), rows(shape), h),
                                   .qkv = as_matrix(qkv.tensor(dtype), rows(shape), 3 * h),
                                   .out = as_matrix(saved.out.tensor(dtype), rows(shape), h),
                                   .lse = saved.lse.tensor(DType::fp32),
                                   .workspace = workspace.tensor(DType::fp32),
                                   .d_qkv = as_matrix(d_qkv.tensor(dtype), rows(shape), 3 * h)});
    return download(d_qkv.tensor(dtype));
  }

  /// What dropout multiplies each probability with: with V = I the output is P itself.
  std::vector<double> dropout_multipliers(AttentionShape shape) {
    const std::int64_t s = shape.sequence;
    shape.head_size = s;
    const std::int64_t h = width(shape);
    std::vector<double> qkv(static_cast<std::size_t>(rows(shape) * 3 * h), 0);
    for (std::int64_t row = 0; row < rows(shape); ++row) {
      for (std::int64_t head = 0; head < shape.heads; ++head) {
        qkv[static_cast<std::size_t>(row * 3 * h + 2 * h + head * s + row % s)] = 1;
      }
    }
    const Forward result = forward(shape, upload(qkv), DType::fp32);
    const auto out = download(result.out.tensor(DType::fp32));
    std::vector<double> multipliers;
    for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
      for (std::int64_t i = 0; i < s; ++i) {
        for (std::int64_t j = 0; j < s; ++j) {
          const std::int64_t row = index / shape.heads * s + i;
          const double p = out[static_cast<std::size_t>(row * h + index % shape.heads * s + j)];
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

  void backward_uses_the_mask(const AttentionShape& shape) {
    const auto multipliers = dropout_multipliers(shape);
    const auto qkv = random_values(rows(shape) * 3 * width(shape), DType::fp32, 1);
    const auto d_out = random_values(rows(shape) * width(shape), DType::fp32, 2);
    const Buffer qkv_buffer = upload(qkv);
    const Forward saved = forward(shape, qkv_buffer, DType::fp32);

    const auto actual = backward(shape, d_out, qkv_buffer, saved, DType::fp32);

    expect_close(download(saved.out.tensor(DType::fp32)), attention(shape, qkv, multipliers).out,
                 1e-5);
    const auto expected = numeric_gradient(
        [&](const std::vector<double>& v) {
          return dot(attention(shape, v, multipliers).out, d_out);
        },
        qkv);
    expect_close(actual, expected, 1e-5);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, AttentionTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(AttentionTest, ForwardAgreesWithSoftmaxOverThePast) {
  const AttentionShape shapes[] = {
      {1, 1, 1, 8},    {2, 7, 3, 4},   {1, 17, 2, 16},  {2, 65, 1, 5},   {1, 129, 2, 8},
      {1, 300, 1, 16}, {1, 70, 2, 64}, {1, 50, 1, 100}, {2, 40, 1, 128}, {1, 20, 2, 136}};
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : kDTypes) {
      const auto qkv = random_values(rows(shape) * 3 * width(shape), dtype, 1);

      const Forward result = forward(shape, upload(qkv, dtype), dtype);

      const Reference expected = attention(shape, qkv);
      expect_close(download(result.out.tensor(dtype)), expected.out, tolerance_of(dtype));
      expect_close(download(result.lse.tensor(DType::fp32)), expected.lse, 1e-5);
    }
  }
}

TEST_P(AttentionTest, ScoresThatGrowWithTheKeysAreNormalisedAgain) {
  const AttentionShape shape{1, 200, 1, 16};
  for (const DType dtype : kDTypes) {
    auto qkv = random_values(rows(shape) * 3 * width(shape), dtype, 1);
    for (std::int64_t row = 0; row < rows(shape); ++row) {
      for (std::int64_t col = 0; col < 32; ++col) {
        auto& value = qkv[static_cast<std::size_t>(row * 48 + col)];
        value = col < 16 ? 1 : rounded(value + static_cast<double>(row) / 8, dtype);
      }
    }

    const Forward result = forward(shape, upload(qkv, dtype), dtype);

    const Reference expected = attention(shape, qkv);
    expect_close(download(result.out.tensor(dtype)), expected.out,
                 dtype == DType::fp32 ? 1e-4 : tolerance_of(dtype));  // scores reach 100
    expect_close(download(result.lse.tensor(DType::fp32)), expected.lse, 1e-5);
  }
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  const AttentionShape shape{1, 5, 1, 4};
  auto qkv = random_values(5 * 12, DType::fp32, 1);
  for (double& value : qkv) value *= 100;

  const Forward result = forward(shape, upload(qkv), DType::fp32);

  EXPECT_FALSE(test::has_inf_or_nan(device(), result.out.tensor(DType::fp32)));
}

TEST_P(AttentionTest, BackwardIsTheGradientOfForward) {
  const AttentionShape shapes[] = {{1, 1, 1, 8}, {2, 7, 2, 4}, {1, 17, 1, 3}};
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : kDTypes) {
      const auto qkv = random_values(rows(shape) * 3 * width(shape), dtype, 1);
      const auto d_out = random_values(rows(shape) * width(shape), dtype, 2);
      const Buffer qkv_buffer = upload(qkv, dtype);
      const Forward saved = forward(shape, qkv_buffer, dtype);

      const auto actual = backward(shape, d_out, qkv_buffer, saved, dtype);

      const auto expected = numeric_gradient(
          [&](const std::vector<double>& v) { return dot(attention(shape, v).out, d_out); }, qkv);
      expect_close(actual, expected, 2 * tolerance_of(dtype));  // out is rounded as well
    }
  }
}

TEST_P(AttentionTest, BackwardOverSeveralBlocksIsTheSumOfDirectionalDerivatives) {
  const AttentionShape shapes[] = {
      {1, 260, 2, 8}, {1, 90, 1, 64}, {1, 70, 1, 120}, {1, 20, 1, 136}};
  for (const AttentionShape& shape : shapes) {
    for (const DType dtype : kDTypes) {
      const auto qkv = random_values(rows(shape) * 3 * width(shape), dtype, 1);
      const auto d_out = random_values(rows(shape) * width(shape), dtype, 2);
      const Buffer qkv_buffer = upload(qkv, dtype);
      const Forward saved = forward(shape, qkv_buffer, dtype);

      const auto gradient = backward(shape, d_out, qkv_buffer, saved, dtype);

      for (const unsigned seed : {3U, 4U, 5U}) {
        const auto direction = random_values(rows(shape) * 3 * width(shape), DType::fp32, seed);
        const auto along = [&](const std::vector<double>& t) {
          auto moved = qkv;
          for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += t[0] * direction[i];
          return dot(attention(shape, moved).out, d_out);
        };
        const double expected = numeric_gradient(along, {0})[0];
        EXPECT_NEAR(dot(gradient, direction), expected, dtype == DType::fp32 ? 1e-4 : 0.1);
      }
    }
  }
}

TEST_P(AttentionTest, DropoutKeepsItsShareAndScalesIt) {
  const AttentionShape shape{2, 65, 2, 8, 0.25, 9};

  const auto multipliers = dropout_multipliers(shape);

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
  EXPECT_EQ(multipliers, dropout_multipliers(shape));
}

TEST_P(AttentionTest, DroppedProbabilitiesFollowFromTheSeedTheHeadAndThePlace) {
  const AttentionShape shape{2, 20, 2, 8, 0.3, 11};

  const auto multipliers = dropout_multipliers(shape);

  const auto expected = kept_multipliers(shape);
  for (std::size_t element = 0; element < multipliers.size(); ++element) {
    if (element % 20 > element / 20 % 20) continue;
    ASSERT_EQ(multipliers[element] > 0, expected[element] > 0) << element;
  }
}

TEST_P(AttentionTest, DropoutOfEveryTypeIsThatOfTheSeed) {
  const AttentionShape shapes[] = {
      {2, 37, 2, 8, 0.3, 5}, {1, 150, 1, 64, 0.1, 6}, {1, 75, 1, 100, 0.5, 7}};
  for (const AttentionShape& shape : shapes) {
    const auto multipliers = kept_multipliers(shape);
    for (const DType dtype : kDTypes) {
      const auto qkv = random_values(rows(shape) * 3 * width(shape), dtype, 1);
      const auto d_out = random_values(rows(shape) * width(shape), dtype, 2);
      const Buffer qkv_buffer = upload(qkv, dtype);

      const Forward saved = forward(shape, qkv_buffer, dtype);
      const auto gradient = backward(shape, d_out, qkv_buffer, saved, dtype);

      expect_close(download(saved.out.tensor(dtype)), attention(shape, qkv, multipliers).out,
                   2 * tolerance_of(dtype));
      const auto direction = random_values(rows(shape) * 3 * width(shape), DType::fp32, 3);
      const auto along = [&](const std::vector<double>& t) {
        auto moved = qkv;
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += t[0] * direction[i];
        return dot(attention(shape, moved, multipliers).out, d_out);
      };
      const double expected = numeric_gradient(along, {0})[0];
      EXPECT_NEAR(dot(gradient, direction), expected, dtype == DType::fp32 ? 1e-4 : 0.1);
    }
  }
}

TEST_P(AttentionTest, BackwardUsesTheMaskOfForward) {
  backward_uses_the_mask({2, 7, 2, 4, 0.4, 21});
  backward_uses_the_mask({1, 5, 1, 136, 0.4, 21});
}

}  // namespace

}  // namespace dstune::testing
