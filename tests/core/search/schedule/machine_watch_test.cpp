#include "core/search/schedule/machine_watch.hpp"

#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"
#include "tests/support/scripted_pool.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::machine_watch_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::make_identity;
using testing_support::make_measured;
using testing_support::make_named;
using testing_support::make_record;
using testing_support::TemporaryDirectory;

constexpr Seconds kLong = 2;  // that an experiment takes

/// A search on a machine whose speed is a function of time, one experiment after the other.
class MachineWatchTest : public testing::Test {
 protected:
  Record record_of(const Experiment& experiment, Seconds step_time) {
    Record record{experiment, Measured{}, {1, 2}, now_, now_ + kLong};
    auto& measured = std::get<Measured>(record.outcome);
    const double slower = slower_at_(now_) * (1 + noise_());
    measured.steps = 5;
    measured.step_time = {step_time * slower, step_time * slower, step_time * slower, 1};
    if (has_clock_) measured.core_use.assign(2, {1, 1, probe_at_(now_), "integers"});
    now_ += kLong;
    return record;
  }

  /// Runs `count` experiments, and whatever reference is due after each.
  void search(int count) {
    for (int i = 0; i < count; ++i) {
      std::vector<Record> batch = {record_of(make_named("x" + std::to_string(++ran_), 2), 0.1)};
      run_references(batch);
      records_.push_back(batch.front());
    }
  }

  void run_references(std::vector<Record>& batch) {
    while (const auto reference = watch_.due(batch)) {
      EXPECT_TRUE(reference->is_reference);
      references_.push_back(reference->name);
      watch_.learn(record_of(*reference, 0.1));
    }
    watch_.mark(batch);
  }

  MachineWatch watch_;
  std::function<double(Seconds)> slower_at_ = [](Seconds) { return 1.0; };
  std::function<double(Seconds)> probe_at_ = [](Seconds) { return 5000.0; };
  std::function<double()> noise_ = [] { return 0.0; };
  bool has_clock_ = true;
  Seconds now_ = 0;
  int ran_ = 0;
  std::vector<Record> records_;
  std::vector<std::string> references_;
};

TEST_F(MachineWatchTest, RepeatsTheFirstForAtMostAThirtiethOfTheTime) {
  search(100);

  EXPECT_THAT(references_, ElementsAre("x1_reference1", "x1_reference2"));
  EXPECT_THAT(watch_.remarks(), ElementsAre(HasSubstr("stayed as it was: x1, repeated 2 times")));
  for (const Record& record : records_) EXPECT_EQ(record.slowed, 1);
}

TEST_F(MachineWatchTest, AReferenceIsResumedFromTheJournal) {
  TemporaryDirectory directory;
  const std::string path = directory / "journal.jsonl";
  std::vector<Record> batch = {
      make_record(testing_support::make_experiment(1, 2), make_measured(0.1))};
  std::get<Measured>(batch[0].outcome).core_use.assign(2, {1, 1, 5000, "integers"});
  EXPECT_FALSE(watch_.due(batch));
  batch[0].finished = 1000;
  const auto reference = watch_.due(batch);
  ASSERT_TRUE(reference);
  Journal(path, Journal::Mode::create, make_identity())
      .finished(make_record(*reference, make_measured(0.1)));

  const Journal resumed(path, Journal::Mode::resume, make_identity(), false, 0);
  EXPECT_TRUE(resumed.find(*reference));
  EXPECT_FALSE(resumed.find(batch[0].experiment)) << "it is no measurement of the search";
}

TEST_F(MachineWatchTest, NeedsNoReferenceInAShortSearch) {
  search(20);

  EXPECT_THAT(references_, IsEmpty());
  EXPECT_THAT(watch_.remarks(), IsEmpty());
}

TEST_F(MachineWatchTest, FindsThatTheMachineBecameSlower) {
  slower_at_ = [](Seconds now) { return now > 80 ? 1.2 : 1.0; };

  search(100);

  EXPECT_THAT(references_, ElementsAre("x1_reference1", "x1_reference2", "x1_reference3"))
      << "the second is tested again";
  EXPECT_EQ(records_.front().slowed, 1);
  EXPECT_NEAR(records_.back().slowed, 1.2, 1e-9);
  ASSERT_THAT(watch_.remarks(), SizeIs(1));
  EXPECT_THAT(
      watch_.remarks()[0],
      AllOf(HasSubstr("the machine changed between 72 s and 142 s"), HasSubstr("20 % longer"),
            HasSubstr("may have seen either state: x35, x36, x37, ...")));
}

TEST_F(MachineWatchTest, FindsItAtOnceWhereTheRanksSayThatTheyAreSlower) {
  slower_at_ = [](Seconds now) { return now > 50 ? 1.3 : 1.0; };
  probe_at_ = [](Seconds now) { return now > 50 ? 3900.0 : 5000.0; };

  search(35);

  EXPECT_THAT(references_, SizeIs(2));
  for (const Record& record : records_) {
    EXPECT_NEAR(record.slowed, record.started > 50 ? 1.3 : 1, 1e-9) << record.experiment.name;
  }
}

TEST_F(MachineWatchTest, FindsThatItRecovered) {
  slower_at_ = [](Seconds now) { return now > 50 && now < 90 ? 1.3 : 1.0; };
  probe_at_ = [](Seconds now) { return now > 50 && now < 90 ? 3900.0 : 5000.0; };

  search(100);

  EXPECT_NEAR(records_.back().slowed, 1, 1e-9);
  EXPECT_THAT(watch_.remarks(), SizeIs(2));
}

TEST_F(MachineWatchTest, TakesABusyMomentForNone) {
  int asked = 0;
  slower_at_ = [&](Seconds now) { return now > 66 && ++asked == 2 ? 1.5 : 1.0; };

  search(60);

  EXPECT_THAT(references_, SizeIs(2)) << "the second says that it was a moment";
  EXPECT_EQ(records_.back().slowed, 1);
  EXPECT_THAT(watch_.remarks(), ElementsAre(HasSubstr("stayed as it was")));
}

TEST_F(MachineWatchTest, SaysNothingWhereTimeIsVirtual) {
  has_clock_ = false;
  slower_at_ = [](Seconds now) { return now > 50 ? 1.3 : 1.0; };

  search(100);

  EXPECT_THAT(references_, IsEmpty());
  EXPECT_THAT(watch_.remarks(), IsEmpty());
}

TEST_F(MachineWatchTest, RunsNothingThatWouldEndAfterTheTimeBudget) {
  watch_ = MachineWatch(60);

  search(100);

  EXPECT_THAT(references_, IsEmpty());
}

/// Twenty machines that become slower at some time, twenty that do not; steps of one configuration
/// differ by a few percent from run to run.
TEST_F(MachineWatchTest, FindsTwentyOfTwentyAndAccusesNoQuietMachine) {
  int found = 0;
  int accused = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (const bool drifts : {true, false}) {
      std::mt19937 random(seed);
      noise_ = [&] { return 0.04 * (static_cast<double>(random()) / 4294967296.0 - 0.5); };
      const Seconds begin = 40 + 5 * static_cast<double>(seed);
      slower_at_ = [=](Seconds now) { return drifts && now > begin ? 1.15 : 1.0; };
      watch_ = MachineWatch();
      now_ = 0;
      search(150);
      const std::string said = watch_.remarks().at(0);
      (drifts ? found : accused) += said.find("the machine changed") == 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(found, 20);
  EXPECT_EQ(accused, 0);
}

TEST_F(MachineWatchTest, MeasuresHowMuchGroupsDisturbEachOther) {
  std::vector<Record> batch;
  for (const char* name : {"a", "b"}) {
    now_ = 0;
    batch.push_back(record_of(make_named(name, 2), 0.14));
  }

  run_references(batch);
  std::vector<Record> last = {record_of(make_named("c", 2), 0.1)};
  run_references(last);

  EXPECT_THAT(references_, ElementsAre("a_reference1"));
  EXPECT_NEAR(batch[0].slowed, 1.4, 1e-9);
  EXPECT_NEAR(batch[1].slowed, 1.4, 1e-9);
  EXPECT_NEAR(last[0].slowed, 1, 1e-9);
  ASSERT_THAT(watch_.remarks(), SizeIs(1));
  EXPECT_THAT(watch_.remarks()[0],
              AllOf(HasSubstr("a took 1.40 times as long beside others as alone"),
                    HasSubstr("1 experiment of the search ran alone")));
}

TEST_F(MachineWatchTest, GoesTheSameWayInAResumedRun) {
  slower_at_ = [](Seconds now) { return now > 80 ? 1.2 : 1.0; };
  search(100);
  const auto first = references_;
  references_.clear();
  watch_ = MachineWatch();
  now_ = 0;
  ran_ = 0;

  search(100);

  EXPECT_EQ(references_, first);
}

}  // namespace
}  // namespace dstune::machine_watch_test
