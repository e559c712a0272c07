#include "core/report/tables/result_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::result_rows_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

std::vector<Record> example() {
  std::vector<Record> records = {make_record(make_experiment(0, 8), OutOfMemory{}),
                                 make_record(make_experiment(1, 2), make_measured(8)),
                                 make_record(make_experiment(2, 4), make_measured(10)),
                                 make_record(make_experiment(3, 4), make_measured(5))};
  std::get<Measured>(records[3].outcome).peak_memory.allocated /= 2;
  return records;
}

void repeat(std::vector<Record>& records, std::size_t which, double speed) {
  for (const int number : {1, 2}) {
    Record again = records[which];
    again.experiment.repetition = number;
    again.experiment.name += concat("_again", number);
    again.outcome = make_measured(speed);
    records.push_back(again);
  }
}

TEST(ResultRows, TheOptimumIsFirstAndWhatItIsComparedWith) {
  const auto rows =
      result_rows(example(), Metric::throughput, {"z1_gas1_tmbspg2", "a smaller stage", {}});

  ASSERT_EQ(rows.size(), 4U);
  EXPECT_TRUE(rows[0].is_optimum);
  EXPECT_EQ(rows[0].figures.record.experiment.name, "z1_gas1_tmbspg2");
  EXPECT_EQ(rows[0].versus_best, 1);
  EXPECT_EQ(rows[0].note, "a smaller stage");
  EXPECT_EQ(rows[1].figures.record.experiment.name, "z2_gas1_tmbspg4");
  EXPECT_DOUBLE_EQ(rows[1].versus_best, 0.8);
  EXPECT_DOUBLE_EQ(rows[2].versus_best, 1.6);
  EXPECT_EQ(rows[3].versus_best, 0);
}

TEST(ResultRows, WhatLooksBetterSaysWhyItIsNotTheOptimum) {
  auto records = example();
  const Optimum optimum{"z1_gas1_tmbspg2", "", {}};
  EXPECT_THAT(result_rows(records, Metric::throughput, optimum)[1].note, HasSubstr("noise"));

  repeat(records, 1, 8);
  const auto once = result_rows(records, Metric::throughput, optimum);
  EXPECT_TRUE(once[1].looks_better);
  EXPECT_THAT(once[1].note, HasSubstr("a single run"));

  repeat(records, 2, 8.01);
  const auto both = result_rows(records, Metric::throughput, optimum);
  EXPECT_TRUE(both[1].looks_better);
  EXPECT_THAT(both[1].note, HasSubstr("noise"));
  EXPECT_FALSE(both[2].looks_better);
  EXPECT_THAT(both[2].note, IsEmpty());
}

TEST(ResultRows, ALatencyThatIsLowerLooksBetter) {
  const auto rows = result_rows(example(), Metric::latency, {"z1_gas1_tmbspg2", "", {}});

  EXPECT_TRUE(rows[1].looks_better);
  EXPECT_DOUBLE_EQ(rows[1].versus_best, 0.8);
  EXPECT_FALSE(rows[2].looks_better);
}

TEST(ResultRows, WithoutAnOptimumTheFastestIsTheBest) {
  const auto rows = result_rows(example(), Metric::throughput);

  EXPECT_FALSE(rows[0].is_optimum);
  EXPECT_EQ(rows[0].versus_best, 1);
  EXPECT_FALSE(rows[1].looks_better);
  EXPECT_DOUBLE_EQ(rows[1].versus_best, 1.25);
}

TEST(ResultRows, KnowTheFrontAndTheTies) {
  const auto rows = result_rows(example(), Metric::throughput,
                                {"z2_gas1_tmbspg4", "the fastest", {"z1_gas1_tmbspg2"}});

  EXPECT_TRUE(rows[0].is_on_front);
  EXPECT_FALSE(rows[1].is_on_front) << "as large as the fastest";
  EXPECT_TRUE(rows[2].is_on_front) << "the smallest";
  EXPECT_FALSE(rows[3].is_on_front) << "it has no numbers";
  EXPECT_FALSE(rows[0].is_tie);
  EXPECT_TRUE(rows[1].is_tie);
  EXPECT_THAT(rows[1].note, HasSubstr("host overhead"));
}

}  // namespace
}  // namespace dstune::result_rows_test
