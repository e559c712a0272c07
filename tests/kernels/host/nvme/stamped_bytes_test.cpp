#include "kernels/host/nvme/stamped_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::host::stamped_bytes_test {
namespace {

std::vector<std::byte> random_bytes(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  fill_random(bytes, seed);
  return bytes;
}

TEST(FillRandom, IsTheSameForASeedAndDiffersForOthers) {
  constexpr std::size_t kSize = (std::size_t{3} << 20U) + 4096;

  EXPECT_EQ(random_bytes(kSize, 1), random_bytes(kSize, 1));
  EXPECT_NE(random_bytes(kSize, 1), random_bytes(kSize, 2));
}

// Of 2^22 bytes each of the 256 values is expected 16384 times, with a deviation of 128.
TEST(FillRandom, HasEveryByteAsOften) {
  const auto bytes = random_bytes(std::size_t{1} << 22U, 3);

  std::array<int, 256> counts{};
  for (const std::byte byte : bytes) ++counts.at(static_cast<std::size_t>(byte));

  for (const int count : counts) EXPECT_NEAR(count, 16384, 6 * 128);
}

TEST(FillRandom, RepeatsNoWord) {
  const auto bytes = random_bytes(std::size_t{1} << 22U, 4);

  std::set<std::vector<std::byte>> words;
  for (std::size_t at = 0; at < bytes.size(); at += 64) {
    words.insert({bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(at + 8)});
  }

  EXPECT_EQ(words.size(), bytes.size() / 64);
}

TEST(FindDifference, FindsNoneInWhatWasWrittenThereThen) {
  auto written = random_bytes(3 * kStampedBytes, 5);
  stamp(written, 40960, 7);
  const auto found = written;
  stamp(written, 0, 8);  // the buffer has been used again

  EXPECT_EQ(find_difference(found, written, 40960, 7), std::nullopt);
}

TEST(FindDifference, FindsAnotherPlaceAnotherTimeAndAWrongByte) {
  auto written = random_bytes(3 * kStampedBytes, 6);
  stamp(written, 40960, 7);

  EXPECT_EQ(find_difference(written, written, 45056, 7), 0U);
  EXPECT_EQ(find_difference(written, written, 40960, 6), 0U);
  for (const Bytes at : {Bytes{0}, Bytes{15}, Bytes{16}, Bytes{4095}, Bytes{3 * 4096 - 1}}) {
    auto found = written;
    found[at] ^= std::byte{1};
    EXPECT_EQ(find_difference(found, written, 40960, 7), at / 4096 * 4096) << at;
  }
}

}  // namespace
}  // namespace dstune::host::stamped_bytes_test
