#include "core/search/predict/measured_rates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/search/predict/estimated_rates.hpp"
#include "tests/support/scripted_pool.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace)
using testing::ElementsAre;
using testing::IsEmpty;

class MeasuredRates : public testing::Test {
 protected:
  MachineRates run(const ScriptedPool::Script& script, Journal::Mode mode) {
    ScriptedPool pool(workers_on("node", 1, 2), script);
    Journal journal(directory_ / "journal.jsonl", mode,
                    {to_json(config_.settings.model), "cpu", "simulated"});
    Scheduler scheduler(pool, journal, {}, {});
    MachineRates rates = measured_rates(config_, 2, scheduler);
    started_ = pool.names();
    return rates;
  }

  static Outcome measure(const Experiment& experiment) {
    Measured measured;
    if (experiment.measures_machine) measured.machine_rates = {.flops_per_s = 42};
    return measured;
  }

  const MemoryDirectory directory_;
  TuningConfig config_ = make_tuning_config(1000);
  std::vector<std::string> started_;
};

TEST_F(MeasuredRates, AreTheGroups) {
  EXPECT_EQ(run(measure, Journal::Mode::create).flops_per_s, 42);
  EXPECT_THAT(started_, ElementsAre("machine"));
}

TEST_F(MeasuredRates, AreMeasuredOnce) {
  run(measure, Journal::Mode::create);

  EXPECT_EQ(run(measure, Journal::Mode::resume).flops_per_s, 42);
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(MeasuredRates, AreEstimatedWhereNobodyCouldMeasure) {
  const auto fail = [](const Experiment&) -> Outcome { return Failed{FailureKind::error, "no"}; };

  EXPECT_EQ(run(fail, Journal::Mode::create), estimated_rates(config_.settings));
}

}  // namespace
}  // namespace dstune
