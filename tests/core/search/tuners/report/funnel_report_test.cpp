#include "core/search/tuners/report/funnel_report.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"

namespace dstune::funnel_report_test {
namespace {

/// Stage 1 with four buckets: one refused, two the same, one too large.
Pool small_pool() {
  SpaceParts parts;
  parts.stage = 1;
  parts.fixed = {{"zero_optimization", {{"stage", 1}}}};
  parts.axes = {{{{"/zero_optimization/reduce_bucket_size", {1, 2, 3, 4}, {}}}}};
  parts.points = {{1, 2, 1}};
  Pool pool;
  pool.spaces.push_back({Space(std::move(parts)), {0, 1, 1, 2}});
  pool.verdicts = {{FateKind::invalid, "because", {}, 0, 0},
                   {FateKind::pooled, "", "z1_tmbspg2_rbs2_gas1", 0, 1},
                   {FateKind::does_not_fit, "needs 5 B", "z1_tmbspg2_rbs4_gas1", 0, 3}};
  StageFunnel funnel;
  funnel.stage = 1;
  funnel.generated = 4;
  funnel.invalid["because"] = 1;
  funnel.same_effect = 1;
  funnel.does_not_fit = 1;
  pool.funnel.push_back(funnel);
  return pool;
}

TEST(FormatFunnel, CountsWhatIsLeftAfterEachStepAndByRule) {
  EXPECT_EQ(format_funnel(small_pool()),
            "| stage | generated | valid | distinct | fitting | to be tried |\n"
            "| ----: | --------: | ----: | -------: | ------: | ----------: |\n"
            "|     1 |         4 |     3 |        2 |       1 |           1 |\n"
            "stage 1: 1 invalid: because\n");
}

TEST(FormatFunnel, AddsUpTheStagesAndShowsWhatIsDominated) {
  Pool pool = small_pool();
  pool.funnel.push_back(pool.funnel[0]);
  pool.funnel[1].stage = 2;
  pool.funnel[1].does_not_fit = 0;
  pool.funnel[1].dominated = 1;

  EXPECT_THAT(format_funnel(pool),
              testing::HasSubstr(
                  "|   all |         8 |     6 |        4 |       3 |         1 |           2 |"));
}

TEST(AddFunnel, ListsEveryConfigurationWithItsFate) {
  json::object plan;

  add_funnel(plan, small_pool());

  EXPECT_EQ(
      to_json_text(plan.at("funnel"), 0),
      R"([{"stage":1,"generated":4,"invalid":{"because":1},"valid":3,"distinct":2,"fitting":1,)"
      R"("dominated":0,"to_be_tried":1}])");
  const json::array& all = plan.at("configurations").as_array();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(to_json_text(all[0], 0),
            R"({"name":"z1_tmbspg2_rbs1_gas1","space":"user","stage":1,"micro_batch":2,)"
            R"("accumulation_steps":1,"fate":"invalid","reason":"because"})");
  EXPECT_EQ(all[1].at("fate"), "to be tried");
  EXPECT_EQ(all[2].at("same_as"), "z1_tmbspg2_rbs2_gas1");
  EXPECT_EQ(all[3].at("fate"), "does not fit");
  EXPECT_EQ(all[3].at("reason"), "needs 5 B");
}

}  // namespace
}  // namespace dstune::funnel_report_test
