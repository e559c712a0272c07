#include "kernels/cuda/device/arena.hpp"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::cuda::arena_test {
namespace {

constexpr Bytes kUnit = Arena::kAlignment;
constexpr StreamSet kNobody{};

TEST(Arena, PlacesAreAlignedAndApart) {
  Arena arena(10 * kUnit);

  const auto first = arena.take(1, Stream::compute);
  const auto second = arena.take(kUnit + 1, Stream::compute);
  const auto third = arena.take(0, Stream::compute);

  EXPECT_EQ(first->offset, 0U);
  EXPECT_EQ(second->offset, kUnit);
  EXPECT_EQ(third->offset, 3 * kUnit);
  EXPECT_EQ(arena.in_use(), 4 * kUnit);
}

TEST(Arena, IsFullWhenNoGapFits) {
  Arena arena(4 * kUnit);
  const auto first = arena.take(kUnit, Stream::compute);
  arena.take(kUnit, Stream::compute);
  const auto third = arena.take(kUnit, Stream::compute);
  arena.give_back(first->offset);
  arena.give_back(third->offset);

  EXPECT_FALSE(arena.take(3 * kUnit, Stream::compute));
  EXPECT_TRUE(arena.take(2 * kUnit, Stream::compute));
  EXPECT_FALSE(arena.take(~Bytes{0}, Stream::compute));
}

TEST(Arena, TakesTheSmallestGapThatFits) {
  Arena arena(10 * kUnit);
  const auto wide = arena.take(3 * kUnit, Stream::compute);
  arena.take(kUnit, Stream::compute);
  const auto narrow = arena.take(2 * kUnit, Stream::compute);
  arena.take(kUnit, Stream::compute);
  arena.give_back(wide->offset);
  arena.give_back(narrow->offset);

  EXPECT_EQ(arena.take(2 * kUnit, Stream::compute)->offset, narrow->offset);
}

TEST(Arena, NeighboursThatAreGivenBackBecomeOneGap) {
  for (const std::vector<int>& order :
       {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}}) {
    Arena arena(3 * kUnit);
    std::vector<Bytes> offsets;
    for (int i = 0; i < 3; ++i) offsets.push_back(arena.take(kUnit, Stream::compute)->offset);

    for (const int i : order) arena.give_back(offsets[static_cast<std::size_t>(i)]);

    EXPECT_TRUE(arena.take(3 * kUnit, Stream::compute));
  }
}

TEST(Arena, AStreamUsesItsOwnPlaceAgainAtOnceAndWaitsForAnothers) {
  Arena arena(kUnit);
  arena.give_back(arena.take(kUnit, Stream::gather)->offset);

  const auto own = arena.take(kUnit, Stream::gather);
  arena.give_back(own->offset);
  const auto other = arena.take(kUnit, Stream::compute);

  EXPECT_EQ(own->wait_for, kNobody);
  EXPECT_TRUE(other->wait_for[static_cast<std::size_t>(Stream::gather)]);
  EXPECT_FALSE(other->wait_for[static_cast<std::size_t>(Stream::compute)]);
}

TEST(Arena, APlaceThatNobodyHasWaitedForKeepsItsUsers) {
  Arena arena(kUnit);
  arena.give_back(arena.take(kUnit, Stream::gather)->offset);
  const auto unused = arena.take(kUnit, Stream::compute);

  arena.give_back(unused->offset, unused->wait_for);

  EXPECT_TRUE(
      arena.take(kUnit, Stream::compute)->wait_for[static_cast<std::size_t>(Stream::gather)]);
}

TEST(Arena, PrefersALargerGapToWaiting) {
  Arena arena(4 * kUnit);
  const auto foreign = arena.take(kUnit, Stream::gather);
  arena.take(kUnit, Stream::gather);
  arena.give_back(foreign->offset);

  const auto place = arena.take(kUnit, Stream::compute);

  EXPECT_EQ(place->wait_for, kNobody);
  EXPECT_EQ(place->offset, 2 * kUnit);
}

TEST(Arena, AGapOfTwoStreamsIsWaitedForByBothOthers) {
  Arena arena(2 * kUnit);
  const auto first = arena.take(kUnit, Stream::gather);
  const auto second = arena.take(kUnit, Stream::reduction);
  arena.give_back(first->offset);
  arena.give_back(second->offset);

  const auto place = arena.take(2 * kUnit, Stream::compute);

  EXPECT_TRUE(place->wait_for[static_cast<std::size_t>(Stream::gather)]);
  EXPECT_TRUE(place->wait_for[static_cast<std::size_t>(Stream::reduction)]);
}

TEST(Arena, NobodyWaitsForStreamsThatAreDone) {
  Arena arena(kUnit);
  arena.give_back(arena.take(kUnit, Stream::gather)->offset);

  arena.forget_streams();

  EXPECT_EQ(arena.take(kUnit, Stream::compute)->wait_for, kNobody);
}

// Against a map of bytes: no two places overlap, and when all is given back nothing is lost.
TEST(Arena, NeverGivesAByteTwice) {
  constexpr Bytes kUnits = 64;
  Arena arena(kUnits * kUnit);
  std::mt19937 random(7);
  std::map<Bytes, Bytes> taken;  // offset -> units
  std::vector<bool> used(kUnits);
  const auto mark = [&](Bytes offset, Bytes units, bool value) {
    for (Bytes unit = offset / kUnit; unit < offset / kUnit + units; ++unit) {
      ASSERT_NE(used.at(unit), value);
      used[unit] = value;
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || taken.empty()) {
      const Bytes units = 1 + random() % 9;
      const auto place = arena.take(units * kUnit, static_cast<Stream>(random() % kStreams));
      if (!place) continue;
      taken[place->offset] = units;
      mark(place->offset, units, true);
    } else {
      const auto victim = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      mark(victim->first, victim->second, false);
      arena.give_back(victim->first);
      taken.erase(victim);
    }
  }
  for (const auto& [offset, units] : taken) arena.give_back(offset);
  EXPECT_EQ(arena.in_use(), 0U);
  EXPECT_TRUE(arena.take(kUnits * kUnit, Stream::compute));
}

}  // namespace
}  // namespace dstune::cuda::arena_test
