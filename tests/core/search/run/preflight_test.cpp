#include "core/search/run/preflight.hpp"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/train/check_machine.hpp"
#include "tests/core/search/feasibility/machine_support.hpp"
#include "tests/support/simulated_machine.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::preflight_test {
namespace {

using namespace testing_support;  // NOLINT(google-build-using-namespace)
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Groups of two ranks on a host, of which a test says how they are in which check.
class PreflightTest : public testing::Test {
 protected:
  using Spoil = std::function<void(MachineCheck& check, int repetition)>;

  static Outcome measure(const Experiment& experiment, const Spoil& spoil) {
    Measured measured;
    EXPECT_TRUE(is_preflight(experiment));
    MachineCheck check;
    for (int rank = 0; rank < experiment.ranks; ++rank) check.ranks.push_back({4e10, 8e9, 0.02});
    check.pairs = {{0, 1, {5e-6, 2e9}}};
    if (spoil) spoil(check, experiment.repetition);
    measured.machine_check = check;
    return measured;
  }

  PreflightReport run(const Spoil& spoil, Journal::Mode mode = Journal::Mode::create,
                      int workers = 2) {
    return run_with([&](const Experiment& each) { return measure(each, spoil); }, mode, workers);
  }

  PreflightReport run_with(const ScriptedPool::Script& script,
                           Journal::Mode mode = Journal::Mode::create, int workers = 2) {
    ScriptedPool pool(workers_on("a", 1, workers), script);
    Journal journal(directory_ / "journal.jsonl", mode,
                    {to_json(config_.settings.model), "cpu", "simulated"});
    Scheduler scheduler(pool, journal, {}, {});
    std::vector<WorkerInfo> infos;
    for (int rank = 1; rank <= workers; ++rank) {
      infos.push_back(test::worker(rank, host_, workers, {test::cpu(test::kGiB, test::kGiB)}));
    }
    PreflightReport report = run_preflight(config_, 2, scheduler, infos);
    started_ = pool.names();
    slow_ = scheduler.slow_workers();
    wrong_ = scheduler.wrong_sums();
    return report;
  }

  const MemoryDirectory directory_;
  TuningConfig config_ = make_tuning_config(1000);
  std::string host_ = "a";
  std::vector<std::string> started_;
  std::vector<std::string> slow_;
  std::optional<std::string> wrong_;
};

TEST_F(PreflightTest, ChecksAQuietMachineOnce) {
  const PreflightReport report = run({});

  EXPECT_THAT(started_, ElementsAre("preflight"));
  EXPECT_THAT(report.summary, HasSubstr("2 ranks: 40.0 GFLOP/s"));
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(preflight_text(report), HasSubstr("no rank is slow"));
}

TEST_F(PreflightTest, NamesTheSlowRankThatIsSlowInEachCheck) {
  const PreflightReport report =
      run([](MachineCheck& check, int) { check.ranks[1].flops_per_s /= 2; });

  EXPECT_THAT(started_, ElementsAre("preflight", "preflight_again1", "preflight_again2"));
  ASSERT_THAT(report.faults, SizeIs(1));
  EXPECT_THAT(report.faults[0],
              AllOf(HasSubstr("rank 2 on a takes 2.0 times as long"), HasSubstr("3 checks")));
  ASSERT_THAT(slow_, SizeIs(1)) << "the scheduler avoids it";
  EXPECT_THAT(slow_[0], testing::Not(HasSubstr("what was measured with it")))
      << "nothing was measured yet";
  EXPECT_THAT(preflight_text(report), HasSubstr("slow: rank 2 on a"));
}

TEST_F(PreflightTest, AccusesNobodyOfAMoment) {
  const PreflightReport report = run([](MachineCheck& check, int repetition) {
    if (repetition < 2) check.ranks[static_cast<std::size_t>(repetition)].jitter = 2;
  });

  EXPECT_THAT(started_, ElementsAre("preflight", "preflight_again1"));
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_THAT(slow_, IsEmpty());
}

TEST_F(PreflightTest, ComparesGroupsThatRunSideBySide) {
  const PreflightReport report = run(
      [](MachineCheck& check, int repetition) {
        if (repetition % 2 == 1) check.ranks[0].copy_bytes_per_s /= 4;
      },
      Journal::Mode::create, 4);

  EXPECT_THAT(started_, SizeIs(6));
  ASSERT_THAT(report.faults, SizeIs(1));
  EXPECT_THAT(report.faults[0], HasSubstr("rank 3 on a takes 4.0 times as long"));
}

TEST_F(PreflightTest, IsInTheJournalForTheSameHosts) {
  run({});
  run({}, Journal::Mode::resume);
  EXPECT_THAT(started_, IsEmpty());

  host_ = "b";
  run({}, Journal::Mode::resume);

  EXPECT_THAT(started_, SizeIs(1)) << "other workers are checked";
}

TEST_F(PreflightTest, EndsTheRunWhereValuesAreWrong) {
  const PreflightReport report = run_with([](const Experiment&) -> Outcome {
    return Failed{FailureKind::wrong_sums, "bytes of rank 1 on a arrived wrong"};
  });

  EXPECT_EQ(wrong_, "bytes of rank 1 on a arrived wrong");
  EXPECT_EQ(report.summary, "");
}

TEST_F(PreflightTest, IsLeftOutWhereThereIsNothingToFind) {
  EXPECT_TRUE(wants_preflight(config_, 2));
  EXPECT_FALSE(wants_preflight(config_, 1)) << "there is nobody to compare with";
  config_.settings.backend = "sim";
  EXPECT_FALSE(wants_preflight(config_, 2));
  config_.preflight = Preflight::only;
  EXPECT_TRUE(wants_preflight(config_, 2));
  config_.preflight = Preflight::off;
  config_.settings.backend = "cpu";
  EXPECT_FALSE(wants_preflight(config_, 2));
}

}  // namespace
}  // namespace dstune::preflight_test
