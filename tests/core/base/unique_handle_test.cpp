#include "core/base/unique_handle.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace dstune::unique_handle_test {
namespace {

// A handle is a place in a list of close counts: each test owns its list.
using Counts = std::vector<int>;

struct Slot {
  Counts* counts = nullptr;
  std::size_t index = 0;

  bool operator==(const Slot&) const = default;
};

struct SlotTraits {
  using Handle = Slot;
  static Slot null() noexcept { return {}; }
  static void close(Slot slot) noexcept { ++(*slot.counts)[slot.index]; }
};

using Owner = UniqueHandle<SlotTraits>;

TEST(UniqueHandle, ClosesOnceAtTheEnd) {
  Counts closed(1);

  { const Owner owner(Slot{&closed, 0}); }

  EXPECT_EQ(closed, Counts{1});
}

TEST(UniqueHandle, MovingHandsOver) {
  Counts closed(1);
  Owner first(Slot{&closed, 0});

  const Owner second(std::move(first));

  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): the contract under test
  EXPECT_TRUE(second);
  EXPECT_EQ(closed, Counts{0});
}

TEST(UniqueHandle, AssigningClosesTheOldHandle) {
  Counts closed(2);
  Owner target(Slot{&closed, 0});

  target = Owner(Slot{&closed, 1});

  EXPECT_EQ(closed, (Counts{1, 0}));
  EXPECT_EQ(target.get().index, 1U);
}

TEST(UniqueHandle, SelfAssignmentKeepsTheHandle) {
  Counts closed(1);
  Owner owner(Slot{&closed, 0});
  Owner& same = owner;

  owner = std::move(same);

  EXPECT_TRUE(owner);
  EXPECT_EQ(closed, Counts{0});
}

TEST(UniqueHandle, ReleasedHandlesStayOpen) {
  Counts closed(1);
  Owner owner(Slot{&closed, 0});

  const Slot slot = owner.release();

  EXPECT_FALSE(owner);
  EXPECT_EQ(slot.index, 0U);
  EXPECT_EQ(closed, Counts{0});
}

TEST(UniqueHandle, ResetClosesOnlyOnce) {
  Counts closed(1);
  Owner owner(Slot{&closed, 0});

  owner.reset();
  owner.reset();

  EXPECT_EQ(closed, Counts{1});
}

}  // namespace
}  // namespace dstune::unique_handle_test
