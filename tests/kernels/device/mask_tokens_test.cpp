#include <algorithm>
#include <cmath>

#include "core/device/operations/random.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::mask_tokens_test {

namespace {

class MaskTokensTest : public DeviceTest {
 protected:
  struct Masked {
    std::vector<std::int64_t> inputs;
    std::vector<std::int64_t> labels;
  };

  Masked mask(const std::vector<std::int64_t>& tokens, MaskTokens op) {
    const Buffer from = upload_indices(tokens);
    const auto count = static_cast<std::int64_t>(tokens.size());
    const Buffer inputs = buffer(count, DType::int64);
    const Buffer labels = buffer(count, DType::int64);
    op.tokens = from.tensor(DType::int64);
    op.inputs = inputs.tensor(DType::int64);
    op.labels = labels.tensor(DType::int64);
    device().run(op);
    return {download_indices(inputs), download_indices(labels)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, MaskTokensTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr std::int64_t kVocab = 1000;
constexpr std::int64_t kMask = 3;

std::vector<std::int64_t> some_tokens(std::size_t count) {
  std::vector<std::int64_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<std::int64_t>(10 + i * 7 % 900);
  return tokens;
}

// Of `all` cases, each with the chance p, four deviations either way.
void expect_share(double count, double all, double p) {
  EXPECT_NEAR(count, all * p, 4 * std::sqrt(all * p * (1 - p)));
}

TEST_P(MaskTokensTest, FifteenOfAHundredAreAskedForAndMostOfThemHidden) {
  constexpr std::size_t kCount = 40000;
  const auto tokens = some_tokens(kCount);

  const Masked result = mask(tokens, {.mask_token = kMask, .vocab_size = kVocab, .seed = 5});

  double asked = 0;
  double hidden = 0;
  double kept = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (result.labels[i] == -1) {
      ASSERT_EQ(result.inputs[i], tokens[i]);
      continue;
    }
    ASSERT_EQ(result.labels[i], tokens[i]);
    ++asked;
    if (result.inputs[i] == kMask) ++hidden;
    if (result.inputs[i] == tokens[i]) ++kept;
  }
  expect_share(asked, kCount, 0.15);
  expect_share(hidden, asked, 0.8);
  expect_share(kept, asked, 0.1);
}

TEST_P(MaskTokensTest, OtherTokensAreAnyOfTheVocabulary) {
  const std::vector<std::int64_t> tokens(60000, 500);

  const auto inputs =
      mask(tokens, {.probability = 0.9, .mask_token = kMask, .vocab_size = kVocab, .seed = 8})
          .inputs;

  std::vector<std::int64_t> others;
  for (const std::int64_t input : inputs) {
    if (input != 500 && input != kMask) others.push_back(input);
  }
  ASSERT_GT(others.size(), 5000U);
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  EXPECT_EQ(*least, 0);
  EXPECT_EQ(*most, kVocab - 1);
}

// Computed apart from token_masking.hpp: SplitMix64 by hand.
TEST_P(MaskTokensTest, TheSameTokensAreMaskedOnEveryBackend) {
  const Masked result = mask(
      some_tokens(24),
      {.probability = 0.5, .mask_token = kMask, .pad_token = 24, .vocab_size = kVocab, .seed = 11});

  EXPECT_EQ(result.inputs,
            (std::vector<std::int64_t>{3,   3, 25, 31, 38,  45,  3,   59,  3, 3,   80,  87,
                                       331, 3, 3,  3,  243, 129, 136, 222, 3, 157, 164, 171}));
  EXPECT_EQ(result.labels,
            (std::vector<std::int64_t>{10, 17,  -1,  -1,  -1,  -1, 52, -1,  66,  73, -1, -1,
                                       94, 101, 108, 115, 122, -1, -1, 143, 150, -1, -1, -1}));
}

TEST_P(MaskTokensTest, APlaceDependsOnTheSeedAndNotOnTheLength) {
  const MaskTokens op{.mask_token = kMask, .vocab_size = kVocab, .seed = 5};
  const auto longer = mask(some_tokens(3000), op);
  MaskTokens other = op;
  other.seed = 6;

  const auto shorter = mask(some_tokens(777), op);

  EXPECT_TRUE(std::equal(shorter.inputs.begin(), shorter.inputs.end(), longer.inputs.begin()));
  EXPECT_TRUE(std::equal(shorter.labels.begin(), shorter.labels.end(), longer.labels.begin()));
  EXPECT_NE(mask(some_tokens(777), other).labels, shorter.labels);
}

TEST_P(MaskTokensTest, PaddingStandsNowhere) {
  for (const std::int64_t padding : {0, 7}) {
    const std::vector<std::int64_t> tokens(20000, padding);

    const Masked result =
        mask(tokens, {.mask_token = kMask, .pad_token = padding, .vocab_size = 8, .seed = 2});

    const std::int64_t next = (padding + 1) % 8;
    EXPECT_EQ(std::count(result.inputs.begin(), result.inputs.end(), padding), 0);
    for (const std::int64_t label : result.labels) EXPECT_TRUE(label == -1 || label == next);
  }
}

TEST_P(MaskTokensTest, MayBeDoneInPlace) {
  const auto tokens = some_tokens(100);
  const MaskTokens op{.mask_token = kMask, .vocab_size = kVocab, .seed = 5};
  const Buffer both = upload_indices(tokens);
  const Buffer labels = buffer(100, DType::int64);
  MaskTokens in_place = op;
  in_place.tokens = in_place.inputs = both.tensor(DType::int64);
  in_place.labels = labels.tensor(DType::int64);

  device().run(in_place);

  const Masked expected = mask(tokens, op);
  EXPECT_EQ(download_indices(both), expected.inputs);
  EXPECT_EQ(download_indices(labels), expected.labels);
}

}  // namespace

}  // namespace dstune::testing::mask_tokens_test
