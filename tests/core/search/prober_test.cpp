#include "core/search/prober.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune {
namespace {

using testing::ElementsAre;

constexpr Point kA{0, 1, 1};
constexpr Point kB{0, 2, 1};
constexpr Point kC{0, 3, 1};

class ProberTest : public testing::Test {
 protected:
  Prober make_prober(int slots) {
    const auto run = [this](const std::vector<Experiment>& batch) {
      std::vector<std::string> names;
      std::vector<Record> records;
      for (const auto& experiment : batch) {
        names.push_back(experiment.name);
        if (!stopped_) records.push_back({experiment, Measured{}, {}, 0, ++time_});
      }
      batches_.push_back(names);
      return records;
    };
    return {config_, 1, run, [slots] { return slots; }};
  }

  TuningConfig config_;
  std::vector<std::vector<std::string>> batches_;
  double time_ = 0;
  bool stopped_ = false;
};

TEST_F(ProberTest, RunsAPointOnce) {
  auto prober = make_prober(1);

  prober.visit(kA);
  prober.visit(kA);

  EXPECT_THAT(batches_, ElementsAre(ElementsAre("z0_gas1_tmbspg1")));
}

TEST_F(ProberTest, FetchesAheadAsManyPointsAsThereAreSlots) {
  auto prober = make_prober(2);

  prober.prefetch({kA, kB, kC});
  prober.visit(kA);
  prober.prefetch({kA, kB, kC});

  EXPECT_THAT(batches_, ElementsAre(ElementsAre("z0_gas1_tmbspg1", "z0_gas1_tmbspg2"),
                                    ElementsAre("z0_gas1_tmbspg3")));
}

TEST_F(ProberTest, FetchesNothingAheadWithOneSlot) {
  auto prober = make_prober(1);

  prober.prefetch({kA, kB});

  EXPECT_TRUE(batches_.empty());
}

TEST_F(ProberTest, CountsOnlyVisitsAsTrialsAndAsCandidates) {
  config_.autotuning.tuner_num_trials = 1;
  auto prober = make_prober(3);

  prober.prefetch({kA, kB, kC});
  const bool over_before = prober.is_over();
  prober.visit(kB);

  EXPECT_FALSE(over_before);
  EXPECT_TRUE(prober.is_over());
  EXPECT_EQ(prober.visit(kA), nullptr);
  EXPECT_EQ(prober.best_since(0)->experiment.name, "z0_gas1_tmbspg2");
  EXPECT_EQ(prober.records().size(), 3U);
}

TEST_F(ProberTest, IsOverOnceTheRunWasStopped) {
  auto prober = make_prober(1);
  stopped_ = true;

  EXPECT_EQ(prober.visit(kA), nullptr);
  EXPECT_TRUE(prober.is_stopped());
  EXPECT_TRUE(prober.is_over());
}

}  // namespace
}  // namespace dstune
