#include "core/device/operations/embedding.hpp"

#include "core/device/operations/elementwise.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::embedding_test {

namespace {

class EmbeddingTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr std::int64_t kVocab = 5;
constexpr std::int64_t kRows = 6;
const std::vector<std::int64_t> kTokens = {4, 0, 4, 2, 4, 1};
constexpr std::int64_t kSequence = 3;  // so there are two

/// Element (i, j) of a matrix of `width` columns.
std::size_t at(std::int64_t i, std::int64_t j, std::int64_t width) {
  return static_cast<std::size_t>(i * width + j);
}

/// f(width, dtype) for all combinations.
template <class F>
void for_widths_and_types(F f) {
  for (const std::int64_t width : {1, 17, 65}) {
    for (const DType dtype : kDTypes) {
      SCOPED_TRACE(::testing::Message() << width << " " << name_of(dtype));
      f(width, dtype);
    }
  }
}

TEST_P(EmbeddingTest, PositionsCountFromZero) {
  const Buffer positions = upload_indices({7, 7, 7});

  device().run(FillPositions{positions.tensor(DType::int64)});

  EXPECT_EQ(download_indices(positions), (std::vector<std::int64_t>{0, 1, 2}));
}

TEST_P(EmbeddingTest, PositionsOfSeveralSequencesCountFromTheFirst) {
  const Buffer positions = upload_indices({7, 7, 7, 7, 7});

  device().run(FillPositions{.out = positions.tensor(DType::int64), .first = 2, .period = 2});

  EXPECT_EQ(download_indices(positions), (std::vector<std::int64_t>{2, 3, 2, 3, 2}));
}

TEST_P(EmbeddingTest, OutputIsTheTablesRows) {
  for_widths_and_types([&](std::int64_t width, DType dtype) {
    const auto table = random_values(kVocab * width, dtype, 1);
    const Buffer table_buffer = upload(table, dtype);
    const Buffer tokens = upload_indices(kTokens);
    const Buffer out = buffer(kRows * width, dtype);

    device().run(Embedding{.tokens = tokens.tensor(DType::int64),
                           .table = as_matrix(table_buffer.tensor(dtype), kVocab, width),
                           .out = as_matrix(out.tensor(dtype), kRows, width)});

    std::vector<double> expected;
    for (const std::int64_t token : kTokens) {
      for (std::int64_t j = 0; j < width; ++j) expected.push_back(table[at(token, j, width)]);
    }
    EXPECT_EQ(download(out.tensor(dtype)), expected);
  });
}

TEST_P(EmbeddingTest, BackwardAddsEveryRowToItsToken) {
  for_widths_and_types([&](std::int64_t width, DType dtype) {
    const auto d_out = random_values(kRows * width, dtype, 3);
    auto d_table = random_values(kVocab * width, dtype, 4);
    const Buffer d_out_buffer = upload(d_out, dtype);
    const Buffer d_table_buffer = upload(d_table, dtype);
    const Buffer tokens = upload_indices(kTokens);

    device().run(
        EmbeddingBackward{.d_out = as_matrix(d_out_buffer.tensor(dtype), kRows, width),
                          .tokens = tokens.tensor(DType::int64),
                          .d_table = as_matrix(d_table_buffer.tensor(dtype), kVocab, width)});

    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int64_t token = kTokens[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < width; ++j) {
        d_table[at(token, j, width)] += d_out[at(i, j, width)];
      }
    }
    expect_close(download(d_table_buffer.tensor(dtype)), d_table, tolerance_of(dtype));
  });
}

TEST_P(EmbeddingTest, ManySmallGradientsOfOneTokenAreNotLostIn16Bits) {
  constexpr std::int64_t kMany = 512;
  const Buffer d_out = upload(std::vector<double>(kMany, 0x1p-6), DType::bf16);
  const Buffer tokens = upload_indices(std::vector<std::int64_t>(kMany, 0));
  const Buffer d_table = upload({1}, DType::bf16);

  device().run(EmbeddingBackward{.d_out = as_matrix(d_out.tensor(DType::bf16), kMany, 1),
                                 .tokens = tokens.tensor(DType::int64),
                                 .d_table = as_matrix(d_table.tensor(DType::bf16), 1, 1)});

  EXPECT_EQ(download(d_table.tensor(DType::bf16)), std::vector<double>{9});
}

/// As often as words: of `count` tokens below `vocab` many are the same, most occur never.
std::vector<std::int64_t> frequent_and_rare(std::int64_t count, std::int64_t vocab) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(i % 3 == 0 ? 300 : (i * 7919) % (i % 5 == 0 ? vocab : 11));
  }
  return tokens;
}

TEST_P(EmbeddingTest, BackwardOfALargeVocabularyAddsEveryRowToItsTokenAndIsTheSameEveryTime) {
  constexpr std::int64_t kLarge = 70000;  // three bytes
  constexpr std::int64_t kMany = 2100;
  constexpr std::int64_t kWidth = 3;
  const auto d_out = random_values(kMany * kWidth, DType::fp32, 3);
  const auto tokens = frequent_and_rare(kMany, kLarge);
  const Buffer d_out_buffer = upload(d_out);
  const Buffer token_buffer = upload_indices(tokens);
  const auto gradient = [&] {
    const Buffer d_table = upload(std::vector<double>(kLarge * kWidth, 1));
    device().run(
        EmbeddingBackward{.d_out = as_matrix(d_out_buffer.tensor(DType::fp32), kMany, kWidth),
                          .tokens = token_buffer.tensor(DType::int64),
                          .d_table = as_matrix(d_table.tensor(DType::fp32), kLarge, kWidth)});
    return download(d_table.tensor(DType::fp32));
  };

  const auto actual = gradient();

  std::vector<double> expected(kLarge * kWidth, 1);
  for (std::int64_t i = 0; i < kMany; ++i) {
    for (std::int64_t j = 0; j < kWidth; ++j) {
      expected[at(tokens[static_cast<std::size_t>(i)], j, kWidth)] += d_out[at(i, j, kWidth)];
    }
  }
  expect_close(actual, expected, 1e-5);
  EXPECT_EQ(gradient(), actual);
}

TEST_P(EmbeddingTest, PositionsAreAddedToEverySequence) {
  for_widths_and_types([&](std::int64_t width, DType dtype) {
    const auto a = random_values(kRows * width, dtype, 1);
    const auto b = random_values(kSequence * width, dtype, 2);
    const Buffer a_buffer = upload(a, dtype);
    const Buffer b_buffer = upload(b, dtype);
    const Buffer out = buffer(kRows * width, dtype);

    device().run(AddBroadcast{.a = as_matrix(a_buffer.tensor(dtype), kRows, width),
                              .b = as_matrix(b_buffer.tensor(dtype), kSequence, width),
                              .out = as_matrix(out.tensor(dtype), kRows, width)});

    std::vector<double> expected;
    for (std::size_t i = 0; i < a.size(); ++i)
      expected.push_back(rounded(a[i] + b[i % b.size()], dtype));
    EXPECT_EQ(download(out.tensor(dtype)), expected);
  });
}

TEST_P(EmbeddingTest, BackwardOfThatSumsUpTheSequences) {
  for_widths_and_types([&](std::int64_t width, DType dtype) {
    const auto d_out = random_values(kRows * width, dtype, 3);
    const Buffer d_out_buffer = upload(d_out, dtype);
    const Buffer d_b = buffer(kSequence * width, dtype);

    device().run(AddBroadcastBackward{as_matrix(d_out_buffer.tensor(dtype), kRows, width),
                                      as_matrix(d_b.tensor(dtype), kSequence, width)});

    std::vector<double> expected(static_cast<std::size_t>(kSequence * width), 0);
    for (std::size_t i = 0; i < d_out.size(); ++i) expected[i % expected.size()] += d_out[i];
    expect_close(download(d_b.tensor(dtype)), expected, tolerance_of(dtype));
  });
}

TEST_P(EmbeddingTest, ManySmallGradientsOfOnePositionAreNotLostIn16Bits) {
  constexpr std::int64_t kMany = 512;
  const Buffer d_out = upload(std::vector<double>(kMany, 0x1p-6 + 0x1p-9), DType::bf16);
  const Buffer d_b = buffer(1, DType::bf16);

  device().run(AddBroadcastBackward{as_matrix(d_out.tensor(DType::bf16), kMany, 1),
                                    as_matrix(d_b.tensor(DType::bf16), 1, 1)});

  EXPECT_EQ(download(d_b.tensor(DType::bf16)), std::vector<double>{9});
}

}  // namespace

}  // namespace dstune::testing::embedding_test
