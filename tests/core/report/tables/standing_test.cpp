#include "core/report/tables/standing.hpp"

#include <boost/json/object.hpp>
#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::standing_test {
namespace {

Standing some() {
  Standing standing;
  standing.running = {{"z1_gas1_tmbspg4", 20}, {"z2_gas1_tmbspg4", 25.5}};
  standing.expected = 40;
  standing.time_left = 200;
  standing.best = numbers_of(testing_support::make_measured(8));
  standing.last_event = "[12/~40 20s] z0_gas1_tmbspg1 -> skipped: no offload";
  standing.last_event_at = 20;
  return standing;
}

TEST(Standing, TextFormIsExact) {
  const json::object object = to_json(some());
  const Standing read = standing_from_json(object);

  EXPECT_EQ(to_json(read), object);
  EXPECT_EQ(object.at("running").at(1).at("name"), "z2_gas1_tmbspg4");
  EXPECT_EQ(object.at("running").at(1).at("since_s").as_double(), 25.5);
  EXPECT_EQ(object.at("expected_experiments"), 40);
  EXPECT_EQ(object.at("time_left_s").as_double(), 200);
  EXPECT_EQ(object.at("best_numbers").at("samples_per_s").as_double(), 8);
  EXPECT_EQ(object.at("last_event").at("at_s").as_double(), 20);
}

TEST(Standing, SaysNullOfWhatIsNotKnown) {
  const json::object object = to_json(Standing());

  for (const char* key : {"expected_experiments", "time_left_s", "best_numbers", "last_event"}) {
    EXPECT_TRUE(object.at(key).is_null()) << key;
  }
  EXPECT_EQ(to_json(standing_from_json(object)), object);
  EXPECT_EQ(to_json(standing_from_json({})), object) << "as earlier versions wrote it";
}

TEST(Standing, IsDescribedInALineEach) {
  EXPECT_EQ(describe(some(), "z0_gas1_tmbspg2", 31),
            "  runs now: z1_gas1_tmbspg4 since 11 s, z2_gas1_tmbspg4 since 6 s\n"
            "  best so far: z0_gas1_tmbspg2, 500.0 ms a step, 8.0 samples/s, peak 3.00 GiB\n"
            "  last, 11 s ago: [12/~40 20s] z0_gas1_tmbspg1 -> skipped: no offload\n");
  EXPECT_EQ(describe(Standing(), "", 31),
            "  runs now: no experiment, since the next one is being chosen\n");
}

TEST(RoughTime, IsNoMoreExactThanWhatIsForetold) {
  EXPECT_EQ(rough_time(0.2), "under 1 s");
  EXPECT_EQ(rough_time(8.4), "8 s");
  EXPECT_EQ(rough_time(119), "119 s");
  EXPECT_EQ(rough_time(130), "2 min");
  EXPECT_EQ(rough_time(4810), "80 min");
  EXPECT_EQ(rough_time(9000), "2 h 30 min");
}

}  // namespace
}  // namespace dstune::standing_test
