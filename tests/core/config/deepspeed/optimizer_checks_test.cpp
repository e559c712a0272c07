#include "core/config/deepspeed/optimizer_checks.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::optimizer_checks_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;

Faults check(const char* text) {
  Problems problems("config.json");
  check_optimizer(json::parse(text).as_object(), problems);
  return faults_in(problems);
}

TEST(CheckOptimizer, KnowsDeepSpeedsTypesInAnyCaseAndTorchsInTheirs) {
  for (const char* text : {R"({"type": "adamw"})", R"({"type": "LION"})", R"({"type": "SGD"})",
                           R"({"type": "RMSprop"})", R"({"type": "Muon"})"}) {
    EXPECT_EQ(check(text), Faults{}) << text;
  }
  EXPECT_EQ(check(R"({"type": "sgd"})"),
            Faults{R"(/optimizer/type  is "sgd"; did you mean "SGD"?)"});
  EXPECT_EQ(check(R"({"type": "AdmaW"})"),
            Faults{R"(/optimizer/type  is "AdmaW"; did you mean "AdamW"?)"});
}

TEST(CheckOptimizer, LeavesTypesAloneThatItDoesNotKnow) {
  EXPECT_EQ(check(R"({"type": "SophiaG", "params": {"rho": 0.1}})"), Faults{});
}

TEST(CheckOptimizer, AParameterMustBeOneOfItsType) {
  EXPECT_EQ(check(R"({"type": "Adam", "params": {"weight_deacy": 0.1}})"),
            Faults{"/optimizer/params/weight_deacy  is not a parameter of Adam; did you mean "
                   "\"weight_decay\"?"});
  EXPECT_EQ(check(R"({"type": "Lion", "params": {"betas": [0.9, 0.99], "eps": 1e-8}})").size(), 1U);
  EXPECT_EQ(check(R"({"type": "SGD", "params": {"betas": [0.9, 0.99]}})"),
            Faults{"/optimizer/params/betas  is not a parameter of SGD"});
  EXPECT_EQ(check(R"({"type": "Lamb", "params": {"max_coeff": 1, "min_coeff": 0.1}})"), Faults{});
}

TEST(CheckOptimizer, NesterovNeedsMomentumWithoutDampening) {
  EXPECT_EQ(check(R"({"type": "SGD", "params": {"nesterov": true, "momentum": 0.9}})"), Faults{});
  EXPECT_EQ(check(R"({"type": "SGD", "params": {"nesterov": true}})"),
            Faults{"/optimizer/params/nesterov  is true; it needs momentum > 0 and dampening 0"});
  EXPECT_EQ(check(R"({"type": "SGD", "params":
                      {"nesterov": true, "momentum": 0.9, "dampening": 0.1}})")
                .size(),
            1U);
}

}  // namespace
}  // namespace dstune::optimizer_checks_test
