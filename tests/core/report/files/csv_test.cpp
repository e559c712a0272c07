#include "core/report/files/csv.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::csv_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

TEST(CsvField, QuotesOnlyWhatMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field(""), "");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
}

std::string csv_of(const std::vector<Record>& records, const Optimum& optimum = {}) {
  return to_csv(result_rows(records, Metric::throughput, optimum), varying_axes(records));
}

TEST(ToCsv, EveryRowHasTheColumnsOfTheHeader) {
  const std::string csv = csv_of({make_record(make_experiment(2, 4, 3), make_measured(8)),
                                  make_record(make_experiment(0, 1), OutOfMemory{}),
                                  make_record(make_experiment(1, 1), Skipped{"no offload"})});

  const auto lines = split(csv, '\n');

  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines.back(), "");
  const auto commas = std::count(lines[0].begin(), lines[0].end(), ',');
  for (const std::size_t row : {1U, 3U}) {
    EXPECT_EQ(std::count(lines[row].begin(), lines[row].end(), ','), commas) << lines[row];
    EXPECT_EQ(lines[row].back(), '\r');
  }
  EXPECT_THAT(lines[2], HasSubstr(",out_of_memory,\"out of memory on rank 0 (wanted"));
}

TEST(ToCsv, HoldsTheNumbersExactlyWithUnitsInTheHeader) {
  Measured measured = make_measured(8);
  measured.peak_memory.active = measured.peak_memory.allocated + 1;

  const std::string csv = csv_of({make_record(make_experiment(2, 4, 3), measured)});

  EXPECT_THAT(csv, HasSubstr(",peak_memory_bytes,peak_active_bytes,peak_reserved_bytes,"
                             "peak_host_memory_bytes,"));
  EXPECT_THAT(
      csv,
      StartsWith(
          "name,position,optimum,note,pareto,tie,runs,zero_stage,train_micro_batch_size_per_gpu,"
          "gradient_accumulation_steps,train_batch_size,ranks,world_ranks,"
          "started_s,finished_s,status,reason,steps,step_time_median_s,"
          "step_time_min_s,step_time_max_s,noise_percent,interval_percent,"));
  EXPECT_THAT(csv,
              HasSubstr("\r\nz2_gas3_tmbspg4,1,false,,true,false,1,2,4,3,24,2,1 "
                        "2,1.5,4.25,measured,,3,0.5,0.4875,"
                        "0.525,0.8,2.491,0.15,0.2625,0.075,0.0,8.0,1024.0,136000000000.0,10.9,10.7,"
                        "3221225472,3221225473,0,0,0,0,0,0,0,0,0.0,0.0,0.0,,,,,,\r\n"));
}

TEST(ToCsv, HasARowForAConfigurationWithTheMeanOfItsRuns) {
  std::vector<Record> records = {make_record(make_experiment(1, 2), make_measured(10)),
                                 make_record(make_experiment(2, 4), make_measured(9))};
  for (const int number : {1, 2}) {
    Record again = records[1];
    again.experiment.repetition = number;
    again.experiment.name += concat("_again", number);
    again.outcome = make_measured(8);
    records.push_back(again);
  }

  const auto lines =
      split(csv_of(records, {"z2_gas1_tmbspg4", "confirmed", {"z1_gas1_tmbspg2"}}), '\n');

  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[1], StartsWith("z2_gas1_tmbspg4,1,true,confirmed,false,false,2,2,4,1,8,2,"));
  EXPECT_THAT(lines[1], HasSubstr(",0.5,0.4875,0.525,"));
  EXPECT_THAT(lines[2],
              StartsWith("z1_gas1_tmbspg2,2,false,\"the number of a single run, which was "
                         "not repeated\",true,true,1,1,2,1,4,2,"));
}

TEST(ToCsv, HasAColumnForEachSettingThatWasSearched) {
  Record first = make_record(make_experiment(1, 2), make_measured(10));
  Record second = make_record(make_experiment(2, 2), make_measured(9));
  first.experiment.ds_config.set("bf16", {{"enabled", true}});
  second.experiment.ds_config.set("dstune", {{"activation_checkpointing", true}});
  second.experiment.ds_config.set("zero_optimization", {{"stage", 2}, {"overlap_comm", true}});

  const auto lines = split(csv_of({first, second}), '\n');

  EXPECT_THAT(lines[0], HasSubstr(",ranks,precision,zero_optimization.overlap_comm,"
                                  "activation_checkpointing,world_ranks,"));
  EXPECT_THAT(lines[1], HasSubstr(",2,bf16,,,1 2,"));
  EXPECT_THAT(lines[2], HasSubstr(",2,fp32,true,true,1 2,"));
}

TEST(ToCsv, NoRecordsIsAHeader) {
  const auto lines = split(csv_of({}), '\n');

  EXPECT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], StartsWith("name,"));
}

TEST(ToCsv, HasMeanAndP95WhereLengthsVary) {
  Measured measured = make_measured(8);
  measured.varying = {0.5, 0.75, 100, 160, 320, 150};

  const std::string csv = csv_of({make_record(make_experiment(2, 4), measured)});

  EXPECT_THAT(csv, HasSubstr(",mean_step_time_s,p95_step_time_s,mean_real_tokens,"
                             "mean_padded_tokens,padded_tokens_per_s,p95_tokens_per_s\r\n"));
  EXPECT_THAT(csv, HasSubstr(",0.5,0.75,100.0,160.0,320.0,150.0\r\n"));
}

}  // namespace
}  // namespace dstune::csv_test
