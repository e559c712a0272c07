#include "core/report/tables/result_table.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/line_width.hpp"
#include "core/base/text.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::result_table_test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

std::vector<Record> example() {
  return {make_record(make_experiment(0, 8),
                      OutOfMemory{1, MemoryCategory::activations, 1U << 20U, 3U << 20U, 1U << 22U}),
          make_record(make_experiment(1, 2), make_measured(8)),
          make_record(make_experiment(2, 4), make_measured(10))};
}

TEST(ResultTable, ShowsWhatVariedAndTheReasonOfWhatHasNoNumbers) {
  auto records = example();
  records[0].outcome = Skipped{"no offload"};

  const std::string table = result_table(records, Metric::throughput);

  // clang-format off
  EXPECT_EQ(table,
            "|   # | experiment      |  zero | micro |    step |  +- | samples | GFLOP/s | peak |   vs |\n"
            "| --: | --------------- | ----: | ----: | ------: | --: | ------: | ------: | ---: | ---: |\n"
            "|     |                 | stage | batch |      ms |   % |      /s |   /rank |  GiB | best |\n"
            "|   1 | z2_gas1_tmbspg4 |     2 |     4 |   400.0 | 2.5 |   10.00 |     170 | 3.00 | 1.00 |\n"
            "|   2 | z1_gas1_tmbspg2 |     1 |     2 |   500.0 | 2.5 |    8.00 |     136 | 3.00 | 1.25 |\n"
            "|   3 | z0_gas1_tmbspg8 |     0 |     8 | skipped |     |         |         |      |      |\n"
            "\nNote: +- is half of the 95 % interval of the step time: that of the median of its steps alone, so\n"
            "another run may differ by more.\n"
            "\nNote: z0_gas1_tmbspg8: skipped: no offload.\n");
  // clang-format on
}

TEST(ResultTable, WideIsEveryColumnAndWhy) {
  auto records = example();
  records[0].outcome = Skipped{"no offload"};

  const auto rows = split(result_table(records, Metric::throughput, {},
                                       {"z1_gas1_tmbspg2", "a smaller stage", {}}, true),
                          '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("|   vs | pareto | note "));
  EXPECT_THAT(rows.at(0), EndsWith(" | result              |"));
  EXPECT_THAT(rows.at(3), HasSubstr("| 1.00 |        | a smaller stage "));
  EXPECT_THAT(rows.at(4),
              HasSubstr("| 0.80 | yes    | differs from the optimum by no more than noise | ran "));
  EXPECT_THAT(rows.at(5), EndsWith("| skipped: no offload |"));
}

std::vector<std::string> lines_over(const std::string& text, std::size_t width) {
  std::vector<std::string> wide;
  for (const std::string& line : split(text, '\n')) {
    if (columns_of(line) > width) wide.push_back(line);
  }
  return wide;
}

/// Records with long names, large numbers and more settings than fit into a line.
std::vector<Record> unwieldy(std::size_t name) {
  std::vector<Record> records;
  for (int i = 0; i < 12; ++i) {
    Record record =
        make_record(make_experiment(i % 4, 1 << i, 1 + i), make_measured(1234.5 / (i + 1)));
    record.experiment.name = concat(std::string(name, 'n'), i);
    json::object zero{{"stage", i % 4}};
    zero["overlap_comm"] = i % 2 == 0;
    zero["reduce_bucket_size"] = 50000000 + i;
    zero["stage3_prefetch_bucket_size"] = 1000000 * i;
    record.experiment.ds_config.set("zero_optimization", zero);
    auto& measured = std::get<Measured>(record.outcome);
    measured.flops_per_s_per_rank *= 40;
    measured.peak_memory.allocated = Bytes{101} << 30U;
    measured.peak_memory.reserved = Bytes{120} << 30U;
    records.push_back(record);
  }
  records[7].outcome = OutOfMemory{};
  return records;
}

TEST(ResultTable, NoLineIsWiderThanATerminalWhateverTheNames) {
  for (const std::size_t name : {3U, 16U, 40U, 200U}) {
    const std::string table =
        result_table(unwieldy(name), Metric::throughput,
                     {"what it must be read with, in a sentence that is much "
                      "longer than a line of a terminal, so that it is broken"},
                     {concat(std::string(name, 'n'), 3), "confirmed", {}});

    EXPECT_THAT(lines_over(table, kLineWidth), testing::IsEmpty());
    EXPECT_THAT(split(table, '\n').at(0),
                AllOf(HasSubstr("| micro | gas |"), HasSubstr("step |  +- |")))
        << name;
    EXPECT_THAT(table, HasSubstr("GiB"));
  }
}

TEST(ResultTable, IsNoWiderThanANarrowTerminal) {
  std::vector<Record> records = unwieldy(40);
  records.push_back(make_record(make_experiment(0, 4), Failed{FailureKind::error, "a reason"}));

  const std::string table =
      result_table(records, Metric::throughput, {std::string(30, 'r') + " " + std::string(30, 'r')},
                   {concat(std::string(40, 'n'), 3), "confirmed", {}}, false, 80);

  EXPECT_THAT(lines_over(table, 80), testing::IsEmpty());
  EXPECT_THAT(table, HasSubstr("a reason"));
}

TEST(ResultTable, SaysWhatThereWasNoRoomFor) {
  const std::string table = result_table(unwieldy(40), Metric::throughput);

  EXPECT_THAT(table, HasSubstr("n...nnn"));
  EXPECT_THAT(table, HasSubstr("--wide also shows whole names, overlap_comm, reduce_bucket_size,"));
  EXPECT_THAT(result_table(unwieldy(40), Metric::throughput, {}, {}, true),
              Not(HasSubstr("--wide also shows")));
}

TEST(ResultTable, TitlesOfSettingsHaveTwoRowsAndNumbersNoMoreDigitsThanTheyNeed) {
  const auto rows = split(result_table(unwieldy(3), Metric::throughput, {}, {}, true), '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("| overlap_ |     reduce_ | stage3_prefetch_ |"));
  EXPECT_THAT(rows.at(2), HasSubstr("| comm     | bucket_size |      bucket_size |"));
  EXPECT_THAT(rows.at(5), HasSubstr("|    50000002 |              2e6 |"));
}

TEST(ResultTable, ShowsWhatACachingAllocatorReservedBesideWhatWasInUse) {
  auto records = example();
  std::get<Measured>(records[1].outcome).peak_memory.reserved = Bytes{4} << 30U;
  records[0].outcome =
      OutOfMemory{1, MemoryCategory::activations, 1U << 20U, 3U << 20U, 5U << 20U, 4U << 20U};

  const std::string table = result_table(records, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| peak | reserved |   vs |"));
  EXPECT_THAT(table, HasSubstr("| 3.00 |     4.00 | 1.25 |"));
  EXPECT_THAT(table, HasSubstr("|   OOM |"));
  EXPECT_THAT(table, HasSubstr("3.00 MiB\nallocated, 4.00 MiB of 5.00 MiB reserved"));
}

TEST(ResultTable, ShowsWhatWasActiveWhereAnythingWasInFlight) {
  auto records = example();
  std::get<Measured>(records[1].outcome).peak_memory.active = Bytes{4} << 30U;

  const std::string table = result_table(records, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| peak | active |   vs |"));
  EXPECT_THAT(table, HasSubstr("| 3.00 |   4.00 | 1.25 |"));
}

TEST(ResultTable, NumbersHaveTheUnitThatSuitsThem) {
  auto records = example();
  for (std::size_t i : {1U, 2U}) {
    auto& measured = std::get<Measured>(records[i].outcome);
    measured.flops_per_s_per_rank = 41.26e12;
    measured.peak_memory.allocated = Bytes{20} << 20U;
  }

  const auto rows = split(result_table(records, Metric::throughput), '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("| samples | TFLOP/s | peak |"));
  EXPECT_THAT(rows.at(2), HasSubstr("|      /s |   /rank |  MiB |"));
  EXPECT_THAT(rows.at(3), HasSubstr("|   10.00 |    41.3 | 20.0 |"));
}

TEST(ResultTable, TokensAreCountedWhereTheyAreTheMetric) {
  const auto rows = split(result_table(example(), Metric::tokens), '\n');

  EXPECT_THAT(rows.at(0), HasSubstr("|  +- | tokens | GFLOP/s |"));
  EXPECT_THAT(rows.at(3), HasSubstr("| 2.5 |   1280 |"));
}

TEST(ResultTable, EndsWithWhatItMustBeReadWith) {
  EXPECT_THAT(result_table(example(), Metric::throughput, {"one thing", "another"}),
              EndsWith("\n\nNote: one thing.\n\nNote: another.\n"));
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

  EXPECT_THAT(rows.at(0), HasSubstr("| runs |  step |  +- | samples |"));
  EXPECT_THAT(rows.at(4), HasSubstr("|   2 | z1_gas1_tmbspg2 |"));
  EXPECT_THAT(rows.at(4), HasSubstr("|    3 | 563.4 | 3.5 |    7.10 |"));
  EXPECT_THAT(rows.at(3), HasSubstr("|    1 | 400.0 | 2.5 |   10.00 |"));
  EXPECT_THAT(rows.at(6), testing::IsEmpty()) << "there are no rows of single repetitions";
  EXPECT_THAT(rows.at(7), HasSubstr("over several runs, that of their"));
}

TEST(ResultJson, AnnouncesTheMeanOfTheRepetitionsBesideEachRun) {
  const auto all = parse_json(result_json(repeated_example(), Metric::throughput,
                                          {"z1_gas1_tmbspg2", "confirmed", {}}))
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

TEST(ResultTable, TheOptimumIsTheFirstRowAndMarkedAsIsWhatLooksBetter) {
  const std::string table =
      result_table(example(), Metric::throughput, {}, {"z1_gas1_tmbspg2", "a smaller stage", {}});
  const auto rows = split(table, '\n');

  EXPECT_THAT(rows.at(3), AllOf(HasSubstr("|  *1 | z1_gas1_tmbspg2 |"), EndsWith("| 1.00 |")));
  EXPECT_THAT(rows.at(4), AllOf(HasSubstr("|  ~2 | z2_gas1_tmbspg4 |"), EndsWith("| 0.80 |")));
  EXPECT_THAT(rows.at(5), HasSubstr("|   3 | z0_gas1_tmbspg8 |"));
  EXPECT_THAT(table, HasSubstr("Note: * is the optimum; ~ has a better number, but within noise"));
}

TEST(ResultTable, NothingLooksBetterThanTheFastest) {
  const std::string table =
      result_table(example(), Metric::throughput, {}, {"z2_gas1_tmbspg4", "the fastest", {}});

  EXPECT_THAT(table, HasSubstr("|  *1 | z2_gas1_tmbspg4 |"));
  EXPECT_THAT(table, HasSubstr("\nNote: * is the optimum.\n"));
  EXPECT_THAT(table, Not(HasSubstr("~")));
}

TEST(ResultJson, SaysWhatIsTheOptimumAndWhy) {
  const auto all = parse_json(result_json(example(), Metric::throughput,
                                          {"z1_gas1_tmbspg2", "a smaller stage", {}}))
                       .as_array();

  EXPECT_EQ(all.at(0).at("name"), "z1_gas1_tmbspg2");
  EXPECT_EQ(all.at(0).at("optimum"), true);
  EXPECT_EQ(all.at(0).at("note"), "a smaller stage");
  EXPECT_EQ(all.at(0).at("pareto"), false);
  EXPECT_EQ(all.at(1).at("optimum"), false);
  EXPECT_EQ(all.at(1).at("pareto"), true);
  EXPECT_EQ(all.at(1).at("note"), "differs from the optimum by no more than noise");
  EXPECT_DOUBLE_EQ(all.at(1).at("announced").at("versus_best").as_double(), 0.8);
  EXPECT_EQ(all.at(1).at("searched"),
            (json::object{{"zero_optimization.stage", 2}, {"train_micro_batch_size_per_gpu", 4}}));
  EXPECT_FALSE(all.at(2).as_object().contains("announced"));
}

TEST(ResultJson, SaysWhatAProfileDoesNotTellFromTheBest) {
  const auto all = parse_json(result_json(example(), Metric::throughput,
                                          {"z2_gas1_tmbspg4", "", {"z1_gas1_tmbspg2"}}))
                       .as_array();

  EXPECT_EQ(all.at(0).at("tie"), false);
  EXPECT_EQ(all.at(1).at("tie"), true);
}

TEST(ResultTable, LeavesOutWhatDidNotVary) {
  auto first = make_record(make_experiment(2, 4), make_measured(10));
  auto second = first;
  second.experiment.ds_config.set("zero_optimization", {{"stage", 2}, {"overlap_comm", true}});

  const std::string table = result_table({first, second}, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| overlap_ |"));
  EXPECT_THAT(table, Not(HasSubstr("| zero")));
  EXPECT_THAT(table, Not(HasSubstr("micro")));
}

TEST(ResultTable, VersusBestOfLatencyIsATimeRatio) {
  const auto records = {make_record(make_experiment(1, 2), make_measured(8)),
                        make_record(make_experiment(2, 4), make_measured(10))};

  const auto rows = split(result_table(records, Metric::latency), '\n');

  EXPECT_THAT(rows.at(3), HasSubstr("| z2_gas1_tmbspg4 |"));
  EXPECT_THAT(rows.at(4), EndsWith("| 1.25 |"));
}

TEST(ResultTable, NothingIsNoTable) { EXPECT_EQ(result_table({}, Metric::throughput), ""); }

TEST(ResultTable, AllFailedIsATableOfReasons) {
  const auto record = make_record(make_experiment(0, 1), Failed{FailureKind::error, "a|b"});

  const std::string table = result_table({record}, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("| failed |"));
  EXPECT_THAT(table, HasSubstr("\nNote: z0_gas1_tmbspg1: failed: a|b"));
  EXPECT_THAT(result_table({record}, Metric::throughput, {}, {}, true), HasSubstr("failed: a\\|b"));
}

TEST(ResultTable, TellsTheReasonsOfSomeAndWhereTheOthersAre) {
  std::vector<Record> records;
  for (int i = 1; i <= 8; ++i) {
    records.push_back(make_record(make_experiment(0, i), Failed{FailureKind::error, "x"}));
  }

  const std::string table = result_table(records, Metric::throughput);

  EXPECT_THAT(table, HasSubstr("Note: z0_gas1_tmbspg5: failed: x"));
  EXPECT_THAT(table, Not(HasSubstr("Note: z0_gas1_tmbspg6")));
  EXPECT_THAT(table, HasSubstr("Note: 3 more have no numbers; --wide and results.csv say why."));
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
