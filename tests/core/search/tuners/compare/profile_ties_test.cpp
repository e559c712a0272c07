#include "core/search/tuners/compare/profile_ties.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::profile_ties_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::make_experiment;

constexpr int kCollectives = 10;

/// One sample per step of `seconds`, `host_seconds` of them in ten collectives.
Measured measured(Seconds seconds, Seconds host_seconds) {
  Measured measured = testing_support::make_measured(1 / seconds);
  measured.step_time = {seconds, seconds, seconds, 1};
  for (int i = 0; i < kCollectives; ++i) {
    measured.ledger.add_host(HostEvent::collective, host_seconds / kCollectives);
  }
  return measured;
}

Record record(int stage, Outcome outcome, std::string_view preset = kGlooOverhead,
              std::int64_t micro_batch = 1) {
  Experiment experiment = make_experiment(stage, micro_batch);
  experiment.settings.host_overhead = host_overhead_preset(preset).value();
  return testing_support::make_record(experiment, std::move(outcome));
}

Record again(Record record, Outcome outcome) {
  record.experiment.name += "_alone";
  record.experiment.repetition = 1;
  record.outcome = std::move(outcome);
  return record;
}

std::string remark(const std::vector<Record>& records, Metric metric = Metric::throughput) {
  return profile_ties_remark(records, metric, records.front());
}

// With half of the host time both take 0.8 s less half of their own: 0.75 and 0.70.
TEST(ProfileTies, AreWhatWinsWithHalfOfTheHostTime) {
  const std::vector<Record> records = {record(1, measured(0.8, 0.1)),
                                       record(2, measured(0.9, 0.4))};

  EXPECT_EQ(remark(records),
            "z1 and z2 are a tie within the preset's spread; calibrate to tell z1 from z2 (3 "
            "minutes): scripts/tune.sh --calibrate");
  EXPECT_EQ(remark(records, Metric::latency), remark(records));
  EXPECT_EQ(remark(records, Metric::flops), remark(records));
  EXPECT_THAT(profile_ties(records, Metric::throughput, records.front()),
              ElementsAre("z2_gas1_tmbspg1"));
}

// 0.8 + 0.4 against 0.9 + 0.1.
TEST(ProfileTies, AreWhatWinsWithTwiceTheHostTime) {
  EXPECT_THAT(remark({record(3, measured(0.8, 0.4)), record(0, measured(0.9, 0.1))}),
              HasSubstr("z3 and z0 are a tie"));
}

TEST(ProfileTies, AreNoneWhereTheOrderStays) {
  EXPECT_EQ(remark({record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.1))}), "");
  EXPECT_EQ(remark({record(1, measured(0.8, 0.1)), record(2, OutOfMemory{})}), "");
}

TEST(ProfileTies, NameEveryStageOnce) {
  EXPECT_EQ(
      remark({record(1, measured(0.8, 0.1)), record(2, measured(0.9, 0.4)),
              record(2, measured(0.9, 0.4), kGlooOverhead, 4), record(3, measured(0.9, 0.5))}),
      "z1, z2 and z3 are a tie within the preset's spread; calibrate to tell z1 from z2 and z3 (3 "
      "minutes): scripts/tune.sh --calibrate");
}

TEST(ProfileTies, NameTheExperimentsOfOneStage) {
  EXPECT_THAT(
      remark({record(1, measured(0.8, 0.1)), record(1, measured(0.9, 0.4), kGlooOverhead, 4)}),
      HasSubstr("z1_gas1_tmbspg1 and z1_gas1_tmbspg4 are a tie"));
}

TEST(ProfileTies, OfAProfileOfUnknownUncertaintyAskForACalibration) {
  auto records = std::vector{record(1, measured(0.8, 0.1)), record(2, measured(0.82, 0.4))};
  for (auto& each : records) each.experiment.settings.host_overhead.seconds[0] = 1e-3;

  EXPECT_THAT(remark(records), HasSubstr("a tie within the profile's spread; calibrate to tell"));
}

// Ten collectives more, each uncertain by 4 ms: 5 % where 2.5 % are between the two.
TEST(ProfileTies, OfACalibratedProfileAreSaidToBeTies) {
  auto records = std::vector{record(1, measured(0.8, 0)), record(2, measured(0.82, 0))};
  for (int i = 0; i < kCollectives; ++i) {
    std::get<Measured>(records[1].outcome).ledger.add_host(HostEvent::collective, 3e-3);
  }
  const auto remark_with = [&](Seconds uncertainty) {
    for (auto& each : records) {
      HostOverhead& overhead = each.experiment.settings.host_overhead;
      overhead.spread_factor = 1;
      overhead.uncertainty.fill(uncertainty);
    }
    return remark(records);
  };

  EXPECT_EQ(remark_with(4e-3), "z1 and z2 are a tie within the profile's uncertainty");
  EXPECT_EQ(remark_with(1e-3), "");
}

TEST(ProfileTies, AreNoneWithoutAProfile) {
  EXPECT_EQ(
      remark({record(1, measured(0.8, 0), kNoOverhead), record(2, measured(0.9, 0), kNoOverhead)}),
      "");
}

// z1 won by being the smaller stage: z2's 0.5 % are noise, with half of the host time too.
TEST(ProfileTies, AreNotThoseOfNoise) {
  EXPECT_EQ(remark({record(1, measured(0.804, 0.1)), record(2, measured(0.8, 0.1))}), "");
  EXPECT_THAT(remark({record(1, measured(0.804, 0.1)), record(2, measured(0.8, 0.2))}),
              HasSubstr("z1 and z2 are a tie"));
}

TEST(ProfileTies, AreByTheRepetitionsThatDecided) {
  const Record best = record(1, measured(0.8, 0.1));
  const Record other = record(2, measured(0.9, 0.4));

  EXPECT_EQ(remark({best, other, again(other, measured(0.9, 0.1)), again(best, best.outcome)}), "");
  const std::vector<Record> records = {best, other, again(other, measured(0.9, 0.4)),
                                       again(best, best.outcome)};
  EXPECT_THAT(profile_ties(records, Metric::throughput, best),
              ElementsAre("z2_gas1_tmbspg1", "z2_gas1_tmbspg1_alone"));
}

// Beside others the larger micro-batch looked like a rival; the repetition is of the other one.
TEST(ProfileTies, LeaveOutWhatRanBesideOthersAndWasNotRepeated) {
  const Record best = record(1, measured(0.8, 0.1));
  const Record other = record(2, measured(0.9, 0.1));
  const std::vector<Record> records = {best, other, record(2, measured(0.9, 0.4), kGlooOverhead, 4),
                                       again(best, best.outcome), again(other, other.outcome)};

  EXPECT_THAT(profile_ties(records, Metric::throughput, best), IsEmpty());
}

}  // namespace
}  // namespace dstune::profile_ties_test
