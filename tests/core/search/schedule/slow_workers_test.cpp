#include "core/search/schedule/slow_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::slow_workers_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::vector<Worker> kWorkers = {{3, "a"}, {4, "a"}, {7, "b"}};

class SlowWorkersTest : public testing::Test {
 protected:
  /// Of one experiment after the other, in which the ranks computed for so long.
  std::string warning(const std::vector<Seconds>& times, int experiments = 1) {
    Measured measured;
    measured.compute_times = times;
    std::string text;
    for (int i = 0; i < experiments; ++i) {
      text += slow_.look("z1_gas1_tmbspg4", measured, kWorkers).value_or("");
    }
    return text;
  }

  SlowWorkers slow_;
};

TEST_F(SlowWorkersTest, AreNamedWithNumbersInTheThirdExperiment) {
  EXPECT_EQ(warning({0.2, 0.2, 0.42}, 2), "");
  EXPECT_THAT(warning({0.2, 0.2, 0.42}),
              AllOf(HasSubstr("rank 7 on b computes 2.1 times as long"), HasSubstr("420"),
                    HasSubstr("200"), HasSubstr("z1_gas1_tmbspg4")));
}

TEST_F(SlowWorkersTest, AreNamedOnce) {
  warning({0.2, 0.2, 0.42}, 3);

  EXPECT_EQ(warning({0.2, 0.2, 0.42}, 5), "");
}

TEST_F(SlowWorkersTest, AreSlowBeyondAThird) {
  EXPECT_EQ(warning({0.2, 0.2, 0.25}, 5), "");
  EXPECT_NE(warning({0.2, 0.2, 0.27}, 5), "");
}

TEST_F(SlowWorkersTest, AreTheSameInEachExperiment) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(warning({0.2, 0.2, 0.42}), "");
    EXPECT_EQ(warning({0.2, 0.42, 0.2}), "");
  }
}

TEST_F(SlowWorkersTest, AreUnknownWithoutTimesOfEachRank) {
  EXPECT_EQ(warning({}, 5), "");
  EXPECT_EQ(warning({0.1, 0.9}, 5), "") << "not of this group";
}

}  // namespace
}  // namespace dstune::slow_workers_test
