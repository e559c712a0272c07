#include "core/train/tape/pooled.hpp"

#include <array>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::pooled_test {
namespace {

template <std::size_t size>
struct Object : Pooled {
  std::array<std::byte, size> bytes{};
};

class Base : public Pooled {
 public:
  virtual ~Base() = default;
};
class Derived final : public Base {
 public:
  std::array<std::byte, 200> bytes{};
};

TEST(Pooled, ObjectsThatLiveTogetherShareNothing) {
  std::set<const std::byte*> begins;
  std::vector<std::unique_ptr<Object<40>>> living;
  for (int i = 0; i < 10000; ++i) {  // several blocks
    living.push_back(std::make_unique<Object<40>>());
    begins.insert(living.back()->bytes.data());
  }
  ASSERT_EQ(begins.size(), living.size());
  const std::byte* before = nullptr;
  for (const std::byte* begin : begins) {
    if (before != nullptr) {
      ASSERT_GE(begin - before, 40);
    }
    before = begin;
  }
}

#ifndef DSTUNE_POOLS_NOTHING
TEST(Pooled, MemoryGoesToTheNextOfItsSize) {
  auto first = std::make_unique<Object<40>>();
  const void* const place = first.get();
  first.reset();
  const auto larger = std::make_unique<Object<72>>();
  EXPECT_NE(static_cast<const void*>(larger.get()), place);
  const auto alike = std::make_unique<Object<33>>();  // as many units
  EXPECT_EQ(static_cast<const void*>(alike.get()), place);
}

TEST(Pooled, AnObjectIsGivenBackWithItsOwnSize) {
  std::unique_ptr<Base> object = std::make_unique<Derived>();
  const void* const place = object.get();
  object.reset();
  const auto small = std::make_unique<Base>();
  EXPECT_NE(static_cast<const void*>(small.get()), place);
  const auto next = std::make_unique<Derived>();
  EXPECT_EQ(static_cast<const void*>(next.get()), place);
}
#endif

TEST(Pooled, LargeObjectsAreMallocs) {
  const auto large = std::make_unique<Object<4096>>();
  const auto other = std::make_unique<Object<4096>>();
  EXPECT_NE(large.get(), other.get());
}

}  // namespace
}  // namespace dstune::pooled_test
