#include "core/report/tables/result_table.hpp"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::result_table_test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

std::vector<std::string> names(const std::vector<Record>& records) {
  std::vector<std::string> found;
  for (const auto& record : records) found.push_back(record.experiment.name);
  return found;
}

std::vector<Record> example() {
  return {make_record(make_experiment(0, 8),
                      OutOfMemory{1, MemoryCategory::activations, 1U << 20U, 3U << 20U, 1U << 22U}),
          make_record(make_experiment(1, 2), make_measured(8)),
          make_record(make_experiment(2, 4), make_measured(10))};
}

TEST(Ranked, BestFirstAndThoseWithoutNumbersLast) {
  EXPECT_THAT(names(ranked(example(), Metric::throughput)),
              ElementsAre("z2_gas1_tmbspg4", "z1_gas1_tmbspg2", "z0_gas1_tmbspg8"));
  EXPECT_THAT(names(ranked(example(), Metric::latency)),
              ElementsAre("z2_gas1_tmbspg4", "z1_gas1_tmbspg2", "z0_gas1_tmbspg8"));
}

TEST(ResultTable, ShowsWhatVariedAndTheReasonOfWhatHasNoNumbers) {
  auto records = example();
  records[0].outcome = Skipped{"no offload"};

  const std::string table = result_table(records, Metric::throughput);

  // clang-format off
  EXPECT_EQ(table,
            "|   # | experiment      | zero | micro batch | step (ms) | +- (%) | samples/s | GFLOP/s/rank | peak (GiB) | vs best | result              |\n"
            "| --: | --------------- | ---: | ----------: | --------: | -----: | --------: | -----------: | ---------: | ------: | ------------------- |\n"
            "|   1 | z2_gas1_tmbspg4 |    2 |           4 |     400.0 |    2.5 |     10.00 |        170.0 |       3.00 |    1.00 | ran                 |\n"
            "|   2 | z1_gas1_tmbspg2 |    1 |           2 |     500.0 |    2.5 |      8.00 |        136.0 |       3.00 |    1.25 | ran                 |\n"
            "|   3 | z0_gas1_tmbspg8 |    0 |           8 |           |        |           |              |            |         | skipped: no offload |\n"
            "\nNote: +- is half of the interval of 95 % of the step time: that of the median of its steps alone, so another run may differ by more.\n");
  // clang-format on
}

TEST(ResultTable, ShowsWhatACachingAllocatorReservedBesideWhatWasInUse) {
  auto records = example();
  std::get<Measured>(records[1].outcome).peak_memory.reserved = Bytes{4} << 30U;
  records[0].outcome =
      OutOfMemory{1, MemoryCategory::activations, 1U << 20U, 3U << 20U, 5U << 20U, 4U << 20U};

  const std::string table = result_table(records, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| peak (GiB) | reserved (GiB) | vs best |"));
  EXPECT_THAT(table, HasSubstr("|       3.00 |           4.00 |    1.25 |"));
  EXPECT_THAT(table, HasSubstr("3.00 MiB allocated, 4.00 MiB of 5.00 MiB reserved"));
}

TEST(ResultTable, ShowsWhatWasActiveWhereAnythingWasInFlight) {
  auto records = example();
  std::get<Measured>(records[1].outcome).peak_memory.active = Bytes{4} << 30U;

  const std::string table = result_table(records, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| peak (GiB) | active (GiB) | vs best |"));
  EXPECT_THAT(table, HasSubstr("|       3.00 |         4.00 |    1.25 |"));
}

TEST(ResultTable, EndsWithWhatItMustBeReadWith) {
  EXPECT_THAT(result_table(example(), Metric::throughput, {"one thing", "another"}),
              EndsWith("may differ by more.\n\nNote: one thing.\n\nNote: another.\n"));
}

/// The example with the second repeated, a little slower than at first.
std::vector<Record> repeated_example() {
  auto records = example();
  for (const double speed : {7.0, 7.1, 7.2}) {
    Record again = records[1];
    again.experiment.repetition = static_cast<int>(records.size()) - 2;
    again.experiment.name += concat("_again", again.experiment.repetition);
    again.outcome = make_measured(speed);
    records.push_back(again);
  }
  return records;
}

// The interval by hand: deviations of the logarithms -0.0142, 0.0000, 0.0140; sd 0.0141; Student's
// t of 2 degrees 4.30; over the root of 3.
TEST(ResultTable, RepetitionsAreOneRowWithTheirMeanAndItsInterval) {
  const auto rows = split(result_table(repeated_example(), Metric::throughput), '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("| runs | step (ms) | +- (%) | samples/s |"));
  EXPECT_THAT(rows.at(3), HasSubstr("|   2 | z1_gas1_tmbspg2 |"));
  EXPECT_THAT(rows.at(3), HasSubstr("|    3 |     563.4 |    3.5 |      7.10 |"));
  EXPECT_THAT(rows.at(2), HasSubstr("|    1 |     400.0 |    2.5 |     10.00 |"));
  EXPECT_THAT(rows.at(5), testing::IsEmpty()) << "there are no rows of single repetitions";
  EXPECT_THAT(rows.at(6), HasSubstr("of more than one run, that of their mean"));
}

TEST(ResultJson, AnnouncesTheMeanOfTheRepetitionsBesideEachRun) {
  const auto all = parse_json(result_json(repeated_example(), Metric::throughput, {},
                                          {"z1_gas1_tmbspg2", "confirmed"}))
                       .as_array();

  ASSERT_EQ(all.size(), 6U);
  const auto& announced = all.at(0).at("announced");
  EXPECT_EQ(announced.at("runs"), 3);
  EXPECT_NEAR(announced.at("samples_per_s").as_double(), 7.1, 0.001);
  EXPECT_NEAR(announced.at("interval_percent").as_double(), 3.5, 0.05);
  EXPECT_EQ(all.at(0).at("outcome").at("samples_per_s").as_double(), 8);
  EXPECT_EQ(all.at(1).at("announced").at("runs"), 1);
  EXPECT_FALSE(all.at(2).as_object().contains("announced"));
}

TEST(ResultTable, MarksWhatAProfileDoesNotTellFromTheBest) {
  const auto rows = split(
      result_table(example(), Metric::throughput, {}, std::set<std::string>{"z1_gas1_tmbspg2"}),
      '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("| vs best | host overhead | result "));
  EXPECT_THAT(rows.at(2), HasSubstr("|    1.00 |               | ran "));
  EXPECT_THAT(rows.at(3), HasSubstr("|    1.25 | tie           | ran "));
}

TEST(ResultTable, TheOptimumIsTheFirstRowWithItsReasonWhereAnotherIsFaster) {
  const auto rows = split(
      result_table(example(), Metric::throughput, {}, {}, {"z1_gas1_tmbspg2", "a smaller stage"}),
      '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("| vs best | optimum         | result "));
  EXPECT_THAT(rows.at(2), HasSubstr("|   1 | z1_gas1_tmbspg2 |"));
  EXPECT_THAT(rows.at(2), HasSubstr("|    1.00 | a smaller stage | ran "));
  EXPECT_THAT(rows.at(3), HasSubstr("|   2 | z2_gas1_tmbspg4 |"));
  EXPECT_THAT(rows.at(3), HasSubstr("|    0.80 |                 | ran "));
}

TEST(ResultTable, TheFastestNeedsNoReason) {
  EXPECT_EQ(result_table(example(), Metric::throughput, {}, {}, {"z2_gas1_tmbspg4", "fastest"}),
            result_table(example(), Metric::throughput));
}

TEST(ResultJson, SaysWhatIsTheOptimumAndWhy) {
  const auto all = parse_json(result_json(example(), Metric::throughput, {},
                                          {"z1_gas1_tmbspg2", "a smaller stage"}))
                       .as_array();

  EXPECT_EQ(all.at(0).at("name"), "z1_gas1_tmbspg2");
  EXPECT_EQ(all.at(0).at("optimum"), true);
  EXPECT_EQ(all.at(0).at("reason"), "a smaller stage");
  EXPECT_EQ(all.at(1).at("optimum"), false);
}

TEST(ResultJson, SaysWhatAProfileDoesNotTellFromTheBest) {
  const auto all =
      parse_json(result_json(example(), Metric::throughput, {"z1_gas1_tmbspg2"})).as_array();

  EXPECT_EQ(all.at(0).at("tie"), false);
  EXPECT_EQ(all.at(1).at("tie"), true);
}

TEST(ResultTable, LeavesOutWhatDidNotVary) {
  auto first = make_record(make_experiment(2, 4), make_measured(10));
  auto second = first;
  second.experiment.ds_config.set("zero_optimization", {{"stage", 2}, {"overlap_comm", true}});

  const std::string table = result_table({first, second}, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| overlap_comm |"));
  EXPECT_THAT(table, Not(HasSubstr("| zero")));
  EXPECT_THAT(table, Not(HasSubstr("micro batch")));
  EXPECT_THAT(table, Not(HasSubstr("result")));
}

TEST(ResultTable, VersusBestOfLatencyIsATimeRatio) {
  const auto records = {make_record(make_experiment(1, 2), make_measured(8)),
                        make_record(make_experiment(2, 4), make_measured(10))};

  const auto rows = split(result_table(records, Metric::latency), '\n');

  EXPECT_THAT(rows.at(2), HasSubstr("| z2_gas1_tmbspg4 |"));
  EXPECT_THAT(rows.at(3), HasSubstr("    1.25 |"));
}

TEST(ResultTable, NothingIsNoTable) { EXPECT_EQ(result_table({}, Metric::throughput), ""); }

TEST(ResultTable, AllFailedIsATableOfReasons) {
  const auto record = make_record(make_experiment(0, 1), Failed{FailureKind::error, "a|b"});

  EXPECT_THAT(result_table({record}, Metric::throughput), HasSubstr("failed: a\\|b"));
}

TEST(ResultJson, HoldsTheRecordsInTheOrderOfTheTable) {
  const auto all = parse_json(result_json(example(), Metric::throughput)).as_array();

  ASSERT_EQ(all.size(), 3U);
  const auto& best = all[0].as_object();
  EXPECT_EQ(best.at("name"), "z2_gas1_tmbspg4");
  EXPECT_EQ(best.at("ranks"), (json::array{1, 2}));
  EXPECT_EQ(best.at("ds_config").at("zero_optimization").at("stage"), 2);
  EXPECT_EQ(best.at("outcome").at("samples_per_s").as_double(), 10);
  EXPECT_EQ(best.at("settings").at("backend"), "cpu");
  EXPECT_EQ(all[2].at("outcome").at("status"), "out_of_memory");
}

}  // namespace
}  // namespace dstune::result_table_test
