#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/operations/optimizers.hpp"
#include "tests/kernels/host/host_case.hpp"

namespace dstune::host::reductions_test {

namespace {

using test::for_teams_and_instructions;
using test::kCounts;
using test::numbers;
using test::tensor_of;

template <class T>
std::vector<T> values_of(std::int64_t count) {
  std::vector<T> values;
  for (const float number : numbers(count, -60000, 60000, 7)) {
    values.push_back(from_float<T>(number));
  }
  return values;
}

/// The flag after a search of `values`, which was `before`.
template <class T>
int found(Threads& threads, const PassOptions& options, std::vector<T>& values, int before = 0) {
  auto flag = static_cast<std::uint8_t>(before);
  compute(threads, FindInfOrNan{tensor_of(values), {&flag, 1, DType::uint8}}, options);
  return flag;
}

template <class T>
class HostSearchTest : public testing::Test {};

using Types = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(HostSearchTest, Types);

TYPED_TEST(HostSearchTest, FindsInfAndNanWhereverTheyAre) {
  const float specials[] = {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
    for (const std::int64_t count : kCounts) {
      auto values = values_of<TypeParam>(count);
      EXPECT_EQ(found(threads, options, values), 0) << count;
      if (count == 0) continue;
      for (const float special : specials) {
        const auto last = static_cast<std::size_t>(count - 1);
        for (const std::size_t place : {std::size_t{0}, last / 2, last}) {
          const TypeParam usual = values[place];
          values[place] = from_float<TypeParam>(special);
          EXPECT_EQ(found(threads, options, values), 1) << special << " at " << place;
          values[place] = usual;
        }
      }
    }
  });
}

TYPED_TEST(HostSearchTest, TakesTheLargestNumbersForNumbers) {
  Threads threads(1);
  std::vector<TypeParam> values(40, from_float<TypeParam>(65504));
  values.push_back(from_float<TypeParam>(-65504));
  EXPECT_EQ(found(threads, {}, values), 0);
}

TEST(HostSearch, NeverClearsTheFlag) {
  Threads threads(2);
  std::vector<float> values(100, 1);
  EXPECT_EQ(found(threads, {}, values, 1), 1);
}

TEST(HostSearch, RefusesIntegers) {
  Threads threads(1);
  std::vector<std::int8_t> values(10);
  std::uint8_t flag = 0;
  EXPECT_THROW(
      compute(threads, FindInfOrNan{{values.data(), 10, DType::int8}, {&flag, 1, DType::uint8}}),
      std::invalid_argument);
}

TEST(HostSearch, TicksInALongPass) {
  Threads threads(1);
  std::vector<float> values(std::size_t{3} << 20U);
  int ticks = 0;
  found(threads, {.tick = [&] { ++ticks; }}, values);
  EXPECT_EQ(ticks, 2);
}

}  // namespace

}  // namespace dstune::host::reductions_test
