#include "kernels/cuda/kernels/sorted_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace dstune::cuda::sorted_rows_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

constexpr std::size_t kScratch = std::size_t{1} << 20U;

class SortedRowsTest : public ::testing::Test {
 protected:
  SortedRowsTest() { cuda_on_host::set_up({}); }
};

std::vector<std::int64_t> tokens_below(std::int64_t vocab, std::int64_t rows) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < rows; ++i) tokens.push_back(i * 7919 % vocab);
  return tokens;
}

TEST_F(SortedRowsTest, RowsComeByTokenAndThoseOfOneInTheirOrder) {
  constexpr std::int64_t kRows = 300;
  for (const std::int64_t vocab : {1, 2, 200, 60000, 70000}) {
    const TestStream stream;
    const auto tokens = tokens_below(vocab, kRows);
    const DeviceArray<std::int64_t> on_device(tokens);
    const DeviceArray<std::uint32_t> scratch(kScratch / sizeof(std::uint32_t));

    const SortedRows sorted =
        sort_rows(stream.get(), on_device.data(), kRows, vocab, scratch.data(), kScratch);

    stream.synchronise();
    const std::vector<std::uint32_t> all = scratch.values();
    const std::uint32_t* const rows = all.data() + (sorted.rows - scratch.data());
    const std::uint32_t* const their_tokens = all.data() + (sorted.tokens - scratch.data());
    std::vector<std::uint32_t> expected(kRows);
    std::iota(expected.begin(), expected.end(), 0U);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](auto a, auto b) { return tokens[a] < tokens[b]; });
    EXPECT_EQ(std::vector(rows, rows + kRows), expected) << vocab;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(their_tokens[i], tokens[expected[i]]) << vocab;
    }
  }
}

TEST_F(SortedRowsTest, MoreRowsThanScratchCanSortAreAnError) {
  const TestStream stream;
  const std::vector<std::int64_t> tokens(1000);
  const DeviceArray<std::int64_t> on_device(tokens);
  const DeviceArray<std::uint32_t> scratch(kScratch / sizeof(std::uint32_t));

  EXPECT_THROW(sort_rows(stream.get(), on_device.data(), 1000, 5, scratch.data(), 4000 * 4), Error);
}

}  // namespace
}  // namespace dstune::cuda::sorted_rows_test
