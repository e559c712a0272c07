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
            "|   # | experiment      | zero | micro batch | step (ms) | noise (%) | samples/s | GFLOP/s/rank | peak (GiB) | vs best | result              |\n"
            "| --: | --------------- | ---: | ----------: | --------: | --------: | --------: | -----------: | ---------: | ------: | ------------------- |\n"
            "|   1 | z2_gas1_tmbspg4 |    2 |           4 |     400.0 |       0.8 |     10.00 |        170.0 |       3.00 |    1.00 | ran                 |\n"
            "|   2 | z1_gas1_tmbspg2 |    1 |           2 |     500.0 |       0.8 |      8.00 |        136.0 |       3.00 |    1.25 | ran                 |\n"
            "|   3 | z0_gas1_tmbspg8 |    0 |           8 |           |           |           |              |            |         | skipped: no offload |\n");
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
  EXPECT_THAT(table, HasSubstr("3.00 MiB in use, 4.00 MiB of 5.00 MiB reserved"));
}

TEST(ResultTable, EndsWithWhatItMustBeReadWith) {
  EXPECT_THAT(result_table(example(), Metric::throughput, {"one thing", "another"}),
              EndsWith("|\n\nNote: one thing.\n\nNote: another.\n"));
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
