#include "kernels/cuda/device/piece_size.hpp"

#include <gtest/gtest.h>

namespace dstune::cuda::piece_size_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kGiB = Bytes{1} << 30U;
constexpr Bytes kMost = ~Bytes{0};

TEST(PieceSize, IsAThirtySecondMoreThanTheLimitAndThatIsNeverLittle) {
  EXPECT_EQ(with_slack(32 * kGiB), 33 * kGiB);
  EXPECT_EQ(with_slack(8 * kMiB), 40 * kMiB);
  EXPECT_EQ(with_slack(kMost), kMost);
}

TEST(PieceSize, ThePieceOfALimitWithoutItsSlackFits) {
  for (const Bytes bytes : {33 * kMiB, 1056 * kMiB - 1, 1056 * kMiB, 79 * kGiB + 13, 33 * kGiB}) {
    const Bytes limit = bytes - slack_of(bytes);

    EXPECT_LE(with_slack(limit), bytes);
    EXPECT_GE(with_slack(limit) + 2, bytes) << "more is kept than needed";
  }
  EXPECT_EQ(slack_of(kMiB), kMiB);
}

TEST(PieceSize, LeavesRoomForWhatIsLoadedLater) {
  EXPECT_EQ(most_for_buffers(10 * kGiB, 10 * kGiB, {}), 10 * kGiB - kLoadedLater);
  EXPECT_EQ(most_for_buffers(kMiB, 10 * kGiB, {0, kMiB}), 0U);
}

TEST(PieceSize, IsTheSameBeforeAndAfterTheLoading) {
  const Bytes before = most_for_buffers(10 * kGiB, 10 * kGiB, {});

  EXPECT_EQ(most_for_buffers(10 * kGiB - 200 * kMiB, 10 * kGiB, {}), before);
  EXPECT_EQ(most_for_buffers(9 * kGiB, 10 * kGiB, {}), 9 * kGiB) << "others took more";
  EXPECT_EQ(most_for_buffers(11 * kGiB, 10 * kGiB, {}), 11 * kGiB - kLoadedLater);
}

TEST(PieceSize, IsTheSameWhateverNcclHasOfItsReserve) {
  const Bytes before = most_for_buffers(10 * kGiB, 10 * kGiB, {0, 2 * kGiB});

  EXPECT_EQ(before, 8 * kGiB - kLoadedLater);
  EXPECT_EQ(most_for_buffers(9 * kGiB, 10 * kGiB, {kGiB, kGiB}), before);
}

}  // namespace
}  // namespace dstune::cuda::piece_size_test
