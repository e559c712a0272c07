#include "core/search/tuners/report/user_remarks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/feasibility/make_experiment.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::user_remarks_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int kRanks = 2;

class UserRemarks : public testing::Test {
 protected:
  Record record(const Point& point, Outcome&& outcome) const {
    return testing_support::make_record(
        make_experiment(config_, kRanks, make_candidate(config_, kRanks, point)),
        std::move(outcome));
  }
  Record record(const Point& point, double samples_per_s) const {
    return record(point, testing_support::make_measured(samples_per_s));
  }
  std::string of_baseline(const std::vector<Record>& records, const Record* best) const {
    return baseline_remark(config_, kRanks, records, best);
  }

  TuningConfig config_;
};

TEST_F(UserRemarks, NameAFreeBatchAndTheFilesOwn) {
  const Record best = record({2, 8, 2}, 30);
  EXPECT_EQ(batch_remark(config_, kRanks, best),
            "the batch was free: the optimum trains 32 samples a step; give train_batch_size (or "
            "--train-batch-size) to keep yours");

  config_.micro_batch_is_given = true;
  config_.start_micro_batch = 4;
  EXPECT_THAT(batch_remark(config_, kRanks, best),
              HasSubstr("trains 32 samples a step, your file's numbers give 8; give"));
  config_.accumulation_steps = 4;
  EXPECT_THAT(batch_remark(config_, kRanks, best), HasSubstr("trains 32 samples a step; give"));
  EXPECT_THAT(free_batch_text(config_), StartsWith("the global batch is free"));

  config_.objective.train_batch_size = 32;
  EXPECT_EQ(batch_remark(config_, kRanks, best), "");
  EXPECT_EQ(free_batch_text(config_), "");
}

TEST_F(UserRemarks, CompareTheOptimumWithTheUsersConfiguration) {
  const Record own = record({1, 4, 1}, 20);
  const Record best = record({2, 8, 1}, 30);
  EXPECT_EQ(of_baseline({own, best}, &best), "") << "the file says none";

  config_.given_point = {1, 4, 1};
  EXPECT_THAT(of_baseline({own, best}, &best), StartsWith("the optimum, z2_gas1_tmbspg8, is 1.50"));
  EXPECT_THAT(of_baseline({own, best}, &best),
              HasSubstr("times your configuration, z1_gas1_tmbspg4"));
  const Record near = record({2, 8, 1}, 20.001);
  EXPECT_THAT(of_baseline({own, near}, &near),
              testing::EndsWith(", so not distinguishable from it"));
  EXPECT_EQ(of_baseline({own, best}, &own),
            "your configuration, z1_gas1_tmbspg4, is the best found");
  EXPECT_EQ(of_baseline({best}, &best), "") << "it was not tried";
  EXPECT_EQ(baseline_name(config_, kRanks, {own, best}), "z1_gas1_tmbspg4");
  EXPECT_EQ(baseline_name(config_, kRanks, {best}), "");
}

TEST_F(UserRemarks, SayWhyTheUsersConfigurationHasNoTime) {
  config_.given_point = {1, 4, 1};
  const Record best = record({2, 8, 1}, 30);
  OutOfMemory full;
  full.requested = 100;

  EXPECT_THAT(of_baseline({record({1, 4, 1}, full), best}, &best),
              StartsWith("your configuration, z1_gas1_tmbspg4, does not fit: out of memory"));
  EXPECT_THAT(of_baseline({record({1, 4, 1}, Skipped{"not modelled"})}, nullptr),
              StartsWith("your configuration, z1_gas1_tmbspg4, could not be measured: "));
}

}  // namespace
}  // namespace dstune::user_remarks_test
