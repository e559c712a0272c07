#include "core/search/tuners/report/final_status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/exit_code.hpp"

namespace dstune::final_status_test {
namespace {

using testing::HasSubstr;

Record best_record() {
  Record record;
  record.experiment.name = "z1_gas1_tmbspg4";
  return record;
}

TEST(FinalStatus, IsFoundIfThereIsABest) {
  TuningResult result;
  result.best = best_record();
  result.records = {best_record(), best_record()};

  const RunStatus status = final_status(result, 12.5);

  EXPECT_EQ(status.state, RunState::found);
  EXPECT_EQ(status.exit_code, exit_found);
  EXPECT_EQ(status.best, "z1_gas1_tmbspg4");
  EXPECT_EQ(status.experiments, 2);
  EXPECT_EQ(status.elapsed, 12.5);
  EXPECT_FALSE(status.provisional);
  EXPECT_EQ(status.message, "");
}

TEST(FinalStatus, IsProvisionalAfterASignal) {
  TuningResult result;
  result.best = best_record();
  result.stopped = true;

  const RunStatus status = final_status(result, 1);

  EXPECT_EQ(status.state, RunState::interrupted);
  EXPECT_EQ(status.exit_code, exit_interrupted);
  EXPECT_TRUE(status.provisional);
  EXPECT_EQ(status.restart, "") << "who sent the signal does not want it to go on";
}

TEST(FinalStatus, HasFailedAfterWrongSums) {
  TuningResult result;
  result.best = best_record();
  result.stopped = true;
  result.wrong_sums = "rank 1 on a: 3 is 4";

  const RunStatus status = final_status(result, 1);

  EXPECT_EQ(status.state, RunState::failed);
  EXPECT_EQ(status.exit_code, exit_internal_error);
  EXPECT_TRUE(status.provisional);
  EXPECT_THAT(status.message, HasSubstr("wrong sums"));
  EXPECT_THAT(status.message, HasSubstr("rank 1 on a: 3 is 4"));
}

TEST(FinalStatus, SaysHowToGoOnWithTooFewWorkers) {
  TuningResult result;
  result.stopped = true;
  result.shortage = Shortage{"z1_gas1_tmbspg4", 4, 3};
  result.largest_group = 2;

  const RunStatus status = final_status(result, 1);

  EXPECT_EQ(status.exit_code, exit_interrupted);
  EXPECT_EQ(status.restart, "worker_lost");
  EXPECT_THAT(status.message, HasSubstr("needs a group of 4 workers, but only 3 are left"));
  EXPECT_THAT(status.message, HasSubstr("--ranks-per-experiment 2 --resume"));
}

TEST(FinalStatus, PromisesNoGroupWhereNoneFits) {
  TuningResult result;
  result.stopped = true;
  result.shortage = Shortage{"z1_gas1_tmbspg4", 2, 1};

  EXPECT_THAT(final_status(result, 1).message, Not(HasSubstr("--ranks-per-experiment")));
}

TEST(FinalStatus, TellsNothingFitsFromFailed) {
  TuningResult result;
  EXPECT_EQ(final_status(result, 1).state, RunState::failed);
  EXPECT_EQ(final_status(result, 1).exit_code, exit_internal_error);

  result.nothing_fits = true;

  EXPECT_EQ(final_status(result, 1).state, RunState::nothing_fits);
  EXPECT_EQ(final_status(result, 1).exit_code, exit_nothing_fits);
  EXPECT_THAT(final_status(result, 1).message, HasSubstr("no experiment fits in memory"));
  result.full.set(number_of(Store::drive));
  EXPECT_THAT(final_status(result, 1).message,
              HasSubstr("the drive is too small (dstune.drive_limit)"));
}

}  // namespace
}  // namespace dstune::final_status_test
