#include "core/report/tables/find_record.hpp"

#include <gtest/gtest.h>

#include "core/report/tables/summary.hpp"
#include "tests/core/report/records.hpp"

namespace dstune::find_record_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

TEST(FindRecord, TheLastOfANameCounts) {
  const std::vector<Record> records = {make_record(make_experiment(1, 4), make_measured(1)),
                                       make_record(make_experiment(2, 4), make_measured(2)),
                                       make_record(make_experiment(1, 4), make_measured(3))};

  EXPECT_EQ(find_record(records, "z1_gas1_tmbspg4"), &records[2]);
  EXPECT_EQ(find_record(records, "z9"), nullptr);
}

TEST(FindBest, IsWhatTheRunChoseElseTheBestOfAll) {
  const std::vector<Record> records = {make_record(make_experiment(1, 4), make_measured(8)),
                                       make_record(make_experiment(2, 4), make_measured(9)),
                                       make_record(make_experiment(3, 4), OutOfMemory{})};

  const auto by_speed = find_best(records, "", Metric::throughput);
  const auto by_choice = find_best(records, "z1_gas1_tmbspg4", Metric::throughput);

  ASSERT_TRUE(by_speed && by_choice);
  EXPECT_EQ(by_speed->experiment.name, "z2_gas1_tmbspg4");
  EXPECT_EQ(by_choice->experiment.name, "z1_gas1_tmbspg4");
}

TEST(FindBest, IsNoneWhereNothingOfATuningSpaceWasMeasured) {
  Record profile = make_record(make_experiment(3, 1), make_measured(5));
  profile.experiment.name = kProfileName;

  EXPECT_FALSE(find_best({}, "", Metric::throughput));
  EXPECT_FALSE(find_best({profile}, "", Metric::throughput));
  EXPECT_FALSE(find_best({make_record(make_experiment(3, 4), OutOfMemory{})}, "z3_gas1_tmbspg4",
                         Metric::throughput));
}

TEST(NearestName, IsSpeltAlikeOrWasCutShortOrAbridged) {
  const std::vector<std::string> known = {"z1_gas1_tmbspg4", "z2_gas1_tmbspg16", "z3_gas8_tmbspg2"};

  EXPECT_EQ(nearest_name("z1_gas1_tmbspg5", known), "z1_gas1_tmbspg4");
  EXPECT_EQ(nearest_name("z2_g", known), "z2_gas1_tmbspg16");
  EXPECT_EQ(nearest_name("z3_2", known), "z3_gas8_tmbspg2");
  EXPECT_EQ(nearest_name("w", known), "");
  EXPECT_EQ(nearest_name("", known), "");
}

}  // namespace
}  // namespace dstune::find_record_test
