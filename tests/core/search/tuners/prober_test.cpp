#include "core/search/tuners/prober.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::prober_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Point kA{0, 1, 1};
constexpr Point kB{0, 2, 1};
constexpr Point kC{0, 3, 1};

class ProberTest : public testing::Test {
 protected:
  // Each the faster the later it is learnt.
  void learn(const Point& point) {
    Measured measured;
    measured.samples_per_s = ++speed_;
    Experiment experiment;
    experiment.name = name_of(point);
    prober_.learn(point, {experiment, measured, {}, 0, 0});
  }

  TuningConfig config_;
  Prober prober_{config_};
  double speed_ = 0;
};

TEST_F(ProberTest, WantsTheFirstUnknownPointThatIsVisitedAndThenNothing) {
  prober_.begin(1);

  EXPECT_EQ(prober_.visit(kA), nullptr);
  EXPECT_TRUE(prober_.is_over());
  EXPECT_EQ(prober_.visit(kB), nullptr);

  EXPECT_THAT(prober_.wanted(), ElementsAre(kA));
}

TEST_F(ProberTest, GoesFurtherInEachPass) {
  learn(kA);
  prober_.begin(1);

  EXPECT_NE(prober_.visit(kA), nullptr);
  EXPECT_NE(prober_.visit(kA), nullptr);
  EXPECT_EQ(prober_.visit(kB), nullptr);

  EXPECT_EQ(prober_.visits(), 1U);
  EXPECT_THAT(prober_.wanted(), ElementsAre(kB));
}

TEST_F(ProberTest, HasNoMeasurementOfWhatDidNotFit) {
  prober_.learn(kA, {{}, OutOfMemory{}, {}, 0, 0});
  prober_.begin(1);

  EXPECT_EQ(prober_.visit(kA), nullptr);

  EXPECT_FALSE(prober_.is_over());
  EXPECT_EQ(prober_.best_since(0), nullptr);
}

TEST_F(ProberTest, FetchesAheadAsManyPointsAsThereAreSlots) {
  learn(kB);
  prober_.begin(2);

  prober_.prefetch({kA, kA, kB, kC, Point{0, 4, 1}});

  EXPECT_THAT(prober_.wanted(), ElementsAre(kA, kC));
}

// What would be fetched anew with what is free now, decides nothing: the search is further on.
TEST_F(ProberTest, FetchesNothingAheadWhereAnEarlierPassHasBeen) {
  prober_.begin(2);
  prober_.prefetch({kA, kB, kC});
  learn(kA);
  learn(kB);
  prober_.begin(2);

  prober_.prefetch({kA, kB, kC});
  EXPECT_THAT(prober_.wanted(), IsEmpty());
  prober_.prefetch({kA, kB, kC});

  EXPECT_THAT(prober_.wanted(), ElementsAre(kC));
}

TEST_F(ProberTest, FetchesNothingAheadWithOneSlot) {
  prober_.begin(1);

  prober_.prefetch({kA, kB});

  EXPECT_THAT(prober_.wanted(), IsEmpty());
}

TEST_F(ProberTest, APassThatOnlyLooksLeavesFetchingToTheNext) {
  prober_.begin(0);
  prober_.prefetch({kA, kB});
  EXPECT_THAT(prober_.wanted(), IsEmpty());
  prober_.begin(2);

  prober_.prefetch({kA, kB});

  EXPECT_THAT(prober_.wanted(), ElementsAre(kA, kB));
}

TEST_F(ProberTest, CountsOnlyVisitsAsTrialsAndAsCandidates) {
  config_.autotuning.tuner_num_trials = 1;
  for (const Point& point : {kA, kB, kC}) learn(point);
  prober_.begin(3);
  const bool over_before = prober_.is_over();

  prober_.visit(kB);

  EXPECT_FALSE(over_before);
  EXPECT_TRUE(prober_.is_over());
  EXPECT_EQ(prober_.visit(kA), nullptr);
  EXPECT_THAT(prober_.wanted(), IsEmpty());
  EXPECT_EQ(prober_.best_since(0)->experiment.name, "z0_gas1_tmbspg2");
}

}  // namespace
}  // namespace dstune::prober_test
