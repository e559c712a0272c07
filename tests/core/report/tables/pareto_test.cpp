#include "core/report/tables/pareto.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::pareto_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Record make_record(const std::string& name, double samples_per_s, Bytes peak) {
  Measured measured;
  measured.samples_per_s = samples_per_s;
  measured.step_time.median = 1 / samples_per_s;
  measured.peak_memory.allocated = peak;
  Record record;
  record.experiment.name = name;
  record.outcome = measured;
  return record;
}

std::vector<std::string> names_of(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const auto& record : records) names.push_back(record.experiment.name);
  return names;
}

TEST(ParetoFront, IsFasterOrSmallerThanEveryOther) {
  const std::vector<Record> records = {make_record("small", 1, 10), make_record("beaten", 2, 35),
                                       make_record("fast", 4, 40), make_record("middle", 3, 30),
                                       make_record("no better", 3, 31)};

  EXPECT_THAT(names_of(pareto_front(records, Metric::throughput)),
              ElementsAre("fast", "middle", "small"));
  EXPECT_THAT(names_of(pareto_front(records, Metric::latency)),
              ElementsAre("fast", "middle", "small"));
}

TEST(ParetoFront, OfEqualSpeedTheSmallerAndOfEqualOnesAll) {
  EXPECT_THAT(names_of(pareto_front({make_record("large", 2, 30), make_record("small", 2, 20),
                                     make_record("again", 2, 20), make_record("larger", 2, 25)},
                                    Metric::throughput)),
              ElementsAre("small", "again"));
}

TEST(ParetoFront, HasNeitherRepetitionsNorFailures) {
  auto repetition = make_record("again", 9, 1);
  repetition.experiment.repetition = 1;
  auto failed = make_record("failed", 9, 1);
  failed.outcome = OutOfMemory{};

  EXPECT_THAT(
      names_of(pareto_front({repetition, failed, make_record("a", 1, 9)}, Metric::throughput)),
      ElementsAre("a"));
}

TEST(ParetoTable, ShowsAChoiceWhereThereIsOne) {
  EXPECT_EQ(pareto_table({make_record("a", 1, 9)}, Metric::throughput), "");
  EXPECT_EQ(
      pareto_table({make_record("a", 1, Bytes{1} << 30U), make_record("b", 2, Bytes{3} << 30U)},
                   Metric::throughput),
      "| pareto_exp_name | metric_val | peak (GiB) |\n"
      "| --------------- | ---------: | ---------: |\n"
      "| b               |          2 |       3.00 |\n"
      "| a               |          1 |       1.00 |\n");
}

}  // namespace
}  // namespace dstune::pareto_test
