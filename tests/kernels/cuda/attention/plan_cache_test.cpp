#include "kernels/cuda/attention/plan_cache.hpp"

#include <new>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::cuda::plan_cache_test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Plan {
  int shape = 0;
};

class PlanCacheTest : public testing::Test {
 protected:
  PlanCacheTest() { testing::internal::CaptureStderr(); }
  ~PlanCacheTest() override { log(); }

  template <class Error>
  const Plan* find_failing(int shape, const Error& error) {
    return cache_.find(shape, [&]() -> std::unique_ptr<Plan> {
      ++made_;
      throw error;
    });
  }
  const Plan* find(int shape) {
    return cache_.find(shape, [&] {
      ++made_;
      return std::make_unique<Plan>(Plan{shape});
    });
  }
  /// Of the test so far.
  const std::string& log() {
    if (!is_read_) log_ = testing::internal::GetCapturedStderr();
    is_read_ = true;
    return log_;
  }

  int made_ = 0;

 private:
  PlanCache<int, Plan> cache_;
  std::string log_;
  bool is_read_ = false;
};

TEST_F(PlanCacheTest, APlanIsMadeOncePerShape) {
  const Plan* const first = find(1);

  EXPECT_EQ(find(1), first);
  EXPECT_EQ(find(2)->shape, 2);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(log(), "");
}

TEST_F(PlanCacheTest, ThatThereIsNoneIsRememberedAndSaidOnce) {
  EXPECT_EQ(find_failing(1, NoPlanError("heads of 7\ncolumns")), nullptr);
  EXPECT_EQ(find(1), nullptr);
  EXPECT_EQ(find_failing(2, NoPlanError("another")), nullptr);

  EXPECT_EQ(made_, 2);
  EXPECT_THAT(log(), HasSubstr("heads of 7\\x0Acolumns; --list-backends"));
  EXPECT_THAT(log(), Not(HasSubstr("another")));
  EXPECT_EQ(log().find("warning: "), log().rfind("warning: "));
}

// Sequences of every length there is would each wait for a plan of their own.
TEST_F(PlanCacheTest, MakesSoManyPlansAndNoMore) {
  const auto most = static_cast<int>(PlanCache<int, Plan>::kMostPlans);
  for (int shape = 0; shape < most; ++shape) find(shape);

  EXPECT_EQ(find(most), nullptr);
  EXPECT_NE(find(0), nullptr);

  EXPECT_EQ(made_, most);
  EXPECT_THAT(log(), HasSubstr("there are more than 512 shapes of attention"));
}

TEST_F(PlanCacheTest, AnyOtherFailureIsPassedOnAndForgotten) {
  EXPECT_THROW(find_failing(1, std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(find_failing(1, Error("lost")), Error);

  EXPECT_NE(find(1), nullptr);
  EXPECT_EQ(log(), "");
}

TEST(TellsOfNoMemory, ByTheNamesOfTheStatesAndByTheWords) {
  EXPECT_TRUE(tells_of_no_memory("code: CUDNN_STATUS_ALLOC_FAILED"));
  EXPECT_TRUE(tells_of_no_memory("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"));
  EXPECT_TRUE(tells_of_no_memory("cudaErrorMemoryAllocation"));
  EXPECT_TRUE(tells_of_no_memory("Plan at index 1: out of memory"));
  EXPECT_FALSE(tells_of_no_memory("CUDNN_STATUS_NOT_SUPPORTED: head_dim"));
}

}  // namespace
}  // namespace dstune::cuda::plan_cache_test
