#include "core/search/feasibility/modelled.hpp"

#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::modelled_test {
namespace {

using testing_support::Faults;
using testing_support::faults_of;

StagePlan stopped(int stage, std::string reason) {
  StagePlan plan;
  plan.stage = stage;
  plan.unsupported = std::move(reason);
  return plan;
}

Faults faults_of_stages(const std::vector<StagePlan>& stages) {
  TuningConfig config;
  config.source = "c.json";
  return faults_of([&] { check_modelled(config, stages); });
}

TEST(CheckModelled, NamesEachKeyOnceWithItsStagesAndTheWayOut) {
  EXPECT_EQ(
      faults_of_stages({stopped(2, "not modelled: zero_optimization.offload_optimizer"),
                        stopped(3,
                                "not modelled: zero_optimization.offload_optimizer, "
                                "zero_optimization.offload_param")}),
      (Faults{"/zero_optimization/offload_optimizer  is not modelled in stages 2, 3; change it, or "
              "tune without it: --without /zero_optimization/offload_optimizer",
              "/zero_optimization/offload_param  is not modelled in stage 3; change it, or tune "
              "without it: --without /zero_optimization/offload_param"}));
}

TEST(CheckModelled, SaysWhichValueOrCombinationItIs) {
  EXPECT_EQ(faults_of_stages({stopped(0, "not modelled: optimizer.type Muon")}),
            Faults{"/optimizer/type  (Muon) is not modelled in stage 0; change it, or tune without "
                   "it: --without /optimizer"});
  EXPECT_EQ(faults_of_stages({stopped(3, "not modelled: zero_optimization.a: false")}),
            Faults{"/zero_optimization/a  (false) is not modelled in stage 3; change it, or tune "
                   "without it: --without /zero_optimization/a"});
  EXPECT_EQ(faults_of_stages({stopped(3, "not modelled: zero_optimization.a with b")}),
            Faults{"/zero_optimization/a  (with b) is not modelled in stage 3; change it, or tune "
                   "without it: --without /zero_optimization/a"});
}

TEST(CheckModelled, QuotesReasonsWithoutAKey) {
  EXPECT_EQ(faults_of_stages({stopped(3, "DeepSpeed stops, always")}),
            Faults{"/zero_optimization  cannot run in stage 3: DeepSpeed stops, always"});
}

TEST(CheckModelled, LetsARunBeginThatHasOneStage) {
  EXPECT_EQ(faults_of_stages({StagePlan{}, stopped(3, "not modelled: amp.enabled")}), Faults{});
}

}  // namespace
}  // namespace dstune::modelled_test
