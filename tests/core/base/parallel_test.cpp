#include "core/base/parallel.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::parallel_test {
namespace {

TEST(ForEachInParallel, DoesEachPieceOnce) {
  std::vector<std::atomic<int>> calls(1000);

  for_each_in_parallel(calls.size(), [&](std::size_t i) { ++calls[i]; });

  for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
  for_each_in_parallel(0, [](std::size_t) { FAIL(); });
}

TEST(ForEachInParallel, ThrowsWhatTheFirstPieceThatFailedHasThrown) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    try {
      for_each_in_parallel(100, [](std::size_t i) {
        if (i >= 7) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& fault) {
      EXPECT_STREQ(fault.what(), "7");
    }
  }
}

}  // namespace
}  // namespace dstune::parallel_test
