#include "core/device/operations/random.hpp"

#include <algorithm>
#include <cmath>

#include "core/device/random_bits.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::random_test {

namespace {

class RandomTest : public DeviceTest {
 protected:
  std::vector<double> normal(std::int64_t count, std::uint64_t seed, std::int64_t first_index) {
    const Buffer x = buffer(count);
    device().run(FillNormal{
        .out = x.tensor(DType::fp32), .stddev = 0.5, .seed = seed, .first_index = first_index});
    return download(x.tensor(DType::fp32));
  }

  std::vector<std::int64_t> tokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed) {
    const Buffer out = buffer(count, DType::int64);
    device().run(FillTokens{.out = out.tensor(DType::int64), .vocab = vocab, .seed = seed});
    return download_indices(out);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, RandomTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(RandomTest, NormalNumbersHaveTheMomentsOfTheirDistribution) {
  constexpr std::int64_t kCount = 100000;

  const auto values = normal(kCount, 7, 0);

  double sum = 0;
  double fourth = 0;
  for (const double value : values) {
    sum += value;
    fourth += std::pow(value / 0.5, 4);
  }
  const auto within_one_sigma = std::count_if(values.begin(), values.end(),
                                              [](double value) { return std::fabs(value) < 0.5; });
  EXPECT_NEAR(sum / kCount, 0, 0.01);
  EXPECT_NEAR(dot(values, values) / kCount, 0.25, 0.005);
  EXPECT_NEAR(fourth / kCount, 3, 0.1);
  EXPECT_NEAR(static_cast<double>(within_one_sigma) / kCount, 0.6827, 0.01);
}

TEST_P(RandomTest, NeighboursAreNotCorrelated) {
  constexpr std::size_t kCount = 100000;

  const auto values = normal(kCount, 7, 0);

  for (const std::size_t lag : {1U, 2U, 16U, 768U}) {
    double sum = 0;
    for (std::size_t i = 0; i + lag < kCount; ++i) sum += values[i] * values[i + lag];
    EXPECT_NEAR(sum / static_cast<double>(kCount) / 0.25, 0, 0.02) << lag;
  }
}

TEST_P(RandomTest, AShardIsFilledAsTheWholeTensorWouldBe) {
  const auto whole = normal(2000, 11, 0);

  for (const std::int64_t first : {0, 1, 13, 511, 512, 1025}) {
    for (const std::int64_t count : {1, 17, 600}) {
      const std::vector<double> expected(whole.begin() + first, whole.begin() + first + count);
      EXPECT_EQ(normal(count, 11, first), expected) << first << " " << count;
    }
  }
}

TEST_P(RandomTest, SeedsGiveDifferentNumbers) {
  EXPECT_EQ(normal(64, 1, 0), normal(64, 1, 0));
  EXPECT_NE(normal(64, 1, 0), normal(64, 2, 0));
}

TEST_P(RandomTest, NormalNumbersAreRoundedToTheStorageType) {
  for (const DType dtype : kDTypes) {
    auto expected = normal(700, 5, 3);
    const Buffer x = buffer(700, dtype);

    device().run(FillNormal{.out = x.tensor(dtype), .stddev = 0.5, .seed = 5, .first_index = 3});

    for (double& value : expected) value = rounded(value, dtype);
    EXPECT_EQ(download(x.tensor(dtype)), expected);
  }
}

TEST_P(RandomTest, TokensAreAsFrequentAsZipfsLawSays) {
  constexpr std::int64_t kCount = 200000;
  for (const std::int64_t vocab : {7, 50257}) {
    std::vector<int> counts(static_cast<std::size_t>(vocab), 0);

    for (const std::int64_t token : tokens(kCount, vocab, 3)) {
      ASSERT_GE(token, 0);
      ASSERT_LT(token, vocab);
      ++counts[static_cast<std::size_t>(token)];
    }

    for (std::size_t k = 0; k < 7; ++k) {
      const auto rank = static_cast<double>(k);
      const double share =
          std::log((rank + 2) / (rank + 1)) / std::log(static_cast<double>(vocab) + 1);
      const double deviation = std::sqrt(kCount * share * (1 - share));
      EXPECT_NEAR(counts[k], kCount * share, 4 * deviation) << "token " << k << " of " << vocab;
    }
  }
}

TEST_P(RandomTest, RareTokensOccurToo) {
  const auto all = tokens(200000, 50257, 5);

  const auto rare =
      std::count_if(all.begin(), all.end(), [](auto token) { return token >= 25128; });

  // ln(50258 / 25129) / ln(50258) of them, four deviations either way
  EXPECT_NEAR(static_cast<double>(rare), 12806, 440);
}

TEST_P(RandomTest, AVocabularyOfOneHasOneToken) {
  EXPECT_EQ(tokens(1000, 1, 9), std::vector<std::int64_t>(1000, 0));
}

TEST_P(RandomTest, FewerTokensAreTheFirstOfMore) {
  const auto more = tokens(3000, 50257, 4);

  const auto fewer = tokens(777, 50257, 4);

  EXPECT_EQ(fewer, std::vector<std::int64_t>(more.begin(), more.begin() + 777));
}

TEST_P(RandomTest, TokensAreTheSameOnEveryBackend) {
  const auto all = tokens(20011, 50257, 6);

  for (std::size_t i = 0; i < all.size(); ++i) {
    const double u = static_cast<double>(random_bits(make_key(6), i) >> 11U) * 0x1p-53;
    ASSERT_EQ(all[i], static_cast<std::int64_t>(std::exp(u * std::log(50258.0))) - 1) << i;
  }
}

TEST_P(RandomTest, TokensDependOnTheSeedAlone) {
  EXPECT_EQ(tokens(65, 50257, 1), tokens(65, 50257, 1));
  EXPECT_NE(tokens(65, 50257, 1), tokens(65, 50257, 2));
}

}  // namespace

}  // namespace dstune::testing::random_test
