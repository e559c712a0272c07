#include "core/report/tables/ranked.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::ranked_test {
namespace {

using testing::ElementsAre;
using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

std::vector<std::string> names(const std::vector<Record>& records) {
  std::vector<std::string> found;
  for (const auto& record : records) found.push_back(record.experiment.name);
  return found;
}

std::vector<Record> example() {
  return {make_record(make_experiment(0, 8), OutOfMemory{}),
          make_record(make_experiment(1, 2), make_measured(8)),
          make_record(make_experiment(2, 4), make_measured(10))};
}

TEST(Ranked, BestFirstAndThoseWithoutNumbersLast) {
  for (const Metric metric : {Metric::throughput, Metric::latency}) {
    EXPECT_THAT(names(ranked(example(), metric)),
                ElementsAre("z2_gas1_tmbspg4", "z1_gas1_tmbspg2", "z0_gas1_tmbspg8"));
  }
}

TEST(Ranked, TheOptimumComesBeforeAll) {
  EXPECT_THAT(names(ranked(example(), Metric::throughput, "z1_gas1_tmbspg2")),
              ElementsAre("z1_gas1_tmbspg2", "z2_gas1_tmbspg4", "z0_gas1_tmbspg8"));
}

TEST(Ranked, OfEqualOnesLessMemoryIsFirstWhateverTheNamesAndTheirOrder) {
  std::vector<Record> records;
  for (const char* name : {"b", "c", "a"}) {
    Measured measured = make_measured(8);
    measured.peak_memory.allocated = name == std::string("c") ? 1 : 2;
    records.push_back(make_record(make_experiment(1, 2), measured));
    records.back().experiment.name = name;
  }

  EXPECT_THAT(names(ranked(records, Metric::throughput)), ElementsAre("c", "b", "a"));
  std::ranges::reverse(records);
  EXPECT_THAT(names(ranked(records, Metric::throughput)), ElementsAre("c", "a", "b"));
}

}  // namespace
}  // namespace dstune::ranked_test
