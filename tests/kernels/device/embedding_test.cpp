#include "core/device/operations/embedding.hpp"

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

namespace {

class EmbeddingTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, EmbeddingTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr std::int64_t kVocab = 5;
constexpr std::int64_t kPositions = 4;
constexpr std::int64_t kSequence = 3;
const std::vector<std::int64_t> kTokens = {4, 0, 4, 2, 4, 1};  // two sequences

TEST_P(EmbeddingTest, OutputIsTokenPlusPosition) {
  for (const std::int64_t width : {1, 17, 65}) {
    for (const DType dtype : kDTypes) {
      const auto wte = random_values(kVocab * width, dtype, 1);
      const auto wpe = random_values(kPositions * width, dtype, 2);
      const Buffer wte_buffer = upload(wte, dtype);
      const Buffer wpe_buffer = upload(wpe, dtype);
      const Buffer tokens = upload_indices(kTokens);
      const Buffer out = buffer(6 * width, dtype);

      device().run(Embedding{.tokens = tokens.tensor(DType::int64),
                             .sequence = kSequence,
                             .wte = as_matrix(wte_buffer.tensor(dtype), kVocab, width),
                             .wpe = as_matrix(wpe_buffer.tensor(dtype), kPositions, width),
                             .out = as_matrix(out.tensor(dtype), 6, width)});

      std::vector<double> expected;
      for (std::int64_t i = 0; i < 6; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          const auto token =
              static_cast<std::size_t>(kTokens[static_cast<std::size_t>(i)] * width + j);
          const auto position = static_cast<std::size_t>(i % kSequence * width + j);
          expected.push_back(rounded(static_cast<float>(wte[token] + wpe[position]), dtype));
        }
      }
      EXPECT_EQ(download(out.tensor(dtype)), expected);
    }
  }
}

TEST_P(EmbeddingTest, BackwardAddsEveryRowToItsTokenAndPosition) {
  for (const std::int64_t width : {1, 17, 65}) {
    for (const DType dtype : kDTypes) {
      const auto d_out = random_values(6 * width, dtype, 3);
      auto d_wte = random_values(kVocab * width, dtype, 4);
      auto d_wpe = random_values(kPositions * width, dtype, 5);
      const Buffer d_out_buffer = upload(d_out, dtype);
      const Buffer d_wte_buffer = upload(d_wte, dtype);
      const Buffer d_wpe_buffer = upload(d_wpe, dtype);
      const Buffer tokens = upload_indices(kTokens);

      device().run(
          EmbeddingBackward{.d_out = as_matrix(d_out_buffer.tensor(dtype), 6, width),
                            .tokens = tokens.tensor(DType::int64),
                            .sequence = kSequence,
                            .d_wte = as_matrix(d_wte_buffer.tensor(dtype), kVocab, width),
                            .d_wpe = as_matrix(d_wpe_buffer.tensor(dtype), kPositions, width)});

      for (std::int64_t i = 0; i < 6; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          const double d = d_out[static_cast<std::size_t>(i * width + j)];
          d_wte[static_cast<std::size_t>(kTokens[static_cast<std::size_t>(i)] * width + j)] += d;
          d_wpe[static_cast<std::size_t>(i % kSequence * width + j)] += d;
        }
      }
      expect_close(download(d_wte_buffer.tensor(dtype)), d_wte, tolerance_of(dtype));
      expect_close(download(d_wpe_buffer.tensor(dtype)), d_wpe, tolerance_of(dtype));
    }
  }
}

TEST_P(EmbeddingTest, ManySmallGradientsOfOneTokenAreNotLostIn16Bits) {
  constexpr std::int64_t kRows = 512;
  const Buffer d_out = upload(std::vector<double>(kRows, 0x1p-6), DType::bf16);
  const Buffer tokens = upload_indices(std::vector<std::int64_t>(kRows, 0));
  const Buffer d_wte = upload({1}, DType::bf16);
  const Buffer d_wpe = upload({1}, DType::bf16);

  device().run(EmbeddingBackward{.d_out = as_matrix(d_out.tensor(DType::bf16), kRows, 1),
                                 .tokens = tokens.tensor(DType::int64),
                                 .sequence = 1,
                                 .d_wte = as_matrix(d_wte.tensor(DType::bf16), 1, 1),
                                 .d_wpe = as_matrix(d_wpe.tensor(DType::bf16), 1, 1)});

  EXPECT_EQ(download(d_wte.tensor(DType::bf16)), std::vector<double>{9});
  EXPECT_EQ(download(d_wpe.tensor(DType::bf16)), std::vector<double>{9});
}

}  // namespace

}  // namespace dstune::testing
