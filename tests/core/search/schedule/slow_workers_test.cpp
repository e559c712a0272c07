#include "core/search/schedule/slow_workers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"

namespace dstune::slow_workers_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<Worker> kWorkers = {{3, "a"}, {4, "a"}, {7, "b"}};

class SlowWorkersTest : public testing::Test {
 protected:
  /// Of one experiment after the other, in which the ranks computed for so long.
  std::string warning(const std::vector<Seconds>& times, int experiments = 1) {
    Measured measured;
    measured.compute_times = times;
    for (int i = 0; i < experiments; ++i) slow_.look("z1_gas1_tmbspg4", measured, kWorkers);
    return join(slow_.take_warnings(), "\n");
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

/// Workers in groups of their own.
class SlowWorkersAlone : public testing::Test {
 protected:
  std::vector<SlowSuspect> look(int rank, CoreUse use, const std::string& hardware = "Xeon") {
    Measured measured;
    measured.core_use = {use};
    return slow_.look("x", measured, {{rank, "a", hardware}});
  }
  std::string said() { return join(slow_.take_warnings(), "\n"); }

  SlowWorkers slow_;
};

TEST_F(SlowWorkersAlone, AreSuspectedByTheShareOfACoreAtOnce) {
  look(2, {1, 0.99, 0});

  const auto suspects = look(1, {4, 1.04, 0});

  ASSERT_THAT(suspects, SizeIs(1));
  EXPECT_EQ(suspects[0].worker.rank, 1);
  EXPECT_EQ(suspects[0].how, "had 26 % of a core where the others had 99 %");
  EXPECT_EQ(said(), "") << "before it was measured elsewhere";
}

TEST_F(SlowWorkersAlone, AreNamedInTheThirdExperimentWhereThereIsNoElsewhere) {
  look(2, {1, 0.99, 0});
  for (int i = 0; i < 2; ++i) look(1, {4, 1.04, 0});
  EXPECT_EQ(said(), "");
  look(1, {4, 1.04, 0});

  EXPECT_THAT(said(), AllOf(HasSubstr("rank 1 on a had 26 % of a core"),
                            HasSubstr("third experiment in a row"), HasSubstr("too slow")));
  EXPECT_THAT(slow_.ranks(), testing::ElementsAre(1));
}

TEST_F(SlowWorkersAlone, AreHeldAgainstTheMedian) {
  look(2, {1, 0.99, 0});
  look(3, {1, 0.3, 0});
  look(4, {1, 0.98, 0});
  look(5, {1, 0.97, 0});

  EXPECT_THAT(look(6, {1, 0.7, 0}), IsEmpty());
  EXPECT_THAT(look(6, {1, 0.6, 0}), SizeIs(1));
}

TEST_F(SlowWorkersAlone, NeedEnoughWorkToBeJudged) {
  look(2, {0.05, 0.05, 0});

  EXPECT_THAT(look(1, {0.06, 0.02, 0}), IsEmpty());
  EXPECT_THAT(look(1, {0.06, 0.02, 0}), SizeIs(1)) << "two experiments together";
}

TEST_F(SlowWorkersAlone, AreJudgedLessStrictlyOnABusyMachine) {
  look(2, {1, 0.5, 0});

  EXPECT_THAT(look(1, {1, 0.2, 0}), IsEmpty());
  EXPECT_THAT(look(1, {1, 0.1, 0}), SizeIs(1));
}

TEST_F(SlowWorkersAlone, AreNotThoseThatTakeTurnsAtTooFewCores) {
  look(1, {1, 0.99, 0});
  look(2, {1, 0.5, 0});
  EXPECT_THAT(look(3, {1, 0.5, 0}), IsEmpty());
  for (int i = 0; i < 3; ++i) {
    look(1, {1, 0.75, 0});
    look(2, {1, 0.76, 0});
  }

  EXPECT_THAT(look(3, {1, 0.5, 0}), IsEmpty());
}

TEST_F(SlowWorkersAlone, AreSuspectedByTheirProbesBesideTheSameHardware) {
  for (int i = 0; i < 3; ++i) {
    look(2, {1, 1, 5000});
    look(3, {1, 1, 9000}, "EPYC");
  }

  EXPECT_THAT(look(1, {1, 1, 3000}), IsEmpty());
  EXPECT_THAT(look(1, {1, 1, 2900}), IsEmpty()) << "one bad moment is none";
  const auto suspects = look(1, {1, 1, 2800});

  ASSERT_THAT(suspects, SizeIs(1));
  EXPECT_THAT(suspects[0].how, HasSubstr("takes 1.7 times as long as the others"));
}

TEST_F(SlowWorkersAlone, AreNamedWhenTheExperimentTookLongerWithThem) {
  look(2, {1, 0.99, 0});
  const auto suspects = look(1, {4, 1.04, 0});

  slow_.compare("x", suspects, 0.4, 0.1);

  EXPECT_THAT(said(), AllOf(HasSubstr("rank 1 on a had 26 % of a core"),
                            HasSubstr("x took 4.0 times as long with it")));
  EXPECT_THAT(slow_.lines(), SizeIs(1));
}

TEST_F(SlowWorkersAlone, AreNotNamedForHavingSharedACoreOnceOrTwice) {
  look(2, {1, 0.99, 0});
  for (int i = 0; i < 2; ++i) {
    const auto suspects = look(1, {2, 1.04, 0});
    ASSERT_THAT(suspects, SizeIs(1)) << "it is measured elsewhere";
    slow_.compare("x", suspects, 0.2, 0.1);
  }
  EXPECT_EQ(said(), "");

  look(1, {2, 1.04, 0});

  EXPECT_THAT(said(), HasSubstr("third experiment in a row"));
}

TEST_F(SlowWorkersAlone, AreClearedWhenTheExperimentTookAsLongElsewhere) {
  look(2, {1, 0.99, 0});
  const auto suspects = look(1, {4, 1.04, 0});

  slow_.compare("x", suspects, 0.12, 0.1);

  EXPECT_EQ(said(), "");
  EXPECT_THAT(slow_.ranks(), IsEmpty());
}

}  // namespace
}  // namespace dstune::slow_workers_test
