#include "core/config/search_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::search_keys_test {
namespace {

using testing::ElementsAre;
using testing_support::Faults;
using testing_support::faults_of;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

class SearchKeys : public testing::Test {
 protected:
  /// A file with these members of "dstune" beside the model, and others beside it.
  TuningConfig read(std::string_view dstune, std::string_view others = "") {
    CommandLine options;
    options.config_path = directory_ / "config.json";
    options.world_size = 4;
    write_file(options.config_path,
               concat(R"({"dstune": {"model": "gpt2", )", dstune, "}", others, "}"));
    return read_tuning_config(options);
  }
  Faults faults(std::string_view dstune, std::string_view others = "") {
    return faults_of([&] { read(dstune, others); });
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(SearchKeys, HaveDefaults) {
  const auto config = read(R"("seed": 1)");

  EXPECT_EQ(config.tuner, "");
  EXPECT_EQ(config.stop_at_chance, 0.05);
  EXPECT_FALSE(config.time_budget);
  EXPECT_FALSE(config.objective.metric);
  EXPECT_FALSE(config.objective.train_batch_size);
  EXPECT_EQ(config.objective.memory_headroom, 0U);
  EXPECT_FALSE(config.autotuning.tuner_type_given);
}

TEST_F(SearchKeys, AreRead) {
  const auto config = read(R"("tuner": "guided", "stop_at_chance": 0.02, "time_budget": "20min",
              "objective": {"metric": "flops", "memory_headroom": "2GiB", "fixed_batch": true})",
                           R"(, "train_batch_size": 64, "autotuning": {"metric": "latency",
              "tuner_type": "gridsearch"})");

  EXPECT_EQ(config.tuner, "guided");
  EXPECT_EQ(config.stop_at_chance, 0.02);
  EXPECT_EQ(config.time_budget, 1200);
  EXPECT_EQ(config.autotuning.metric, Metric::flops) << "the objective wins";
  EXPECT_EQ(config.objective.memory_headroom, Bytes{2} << 30U);
  EXPECT_EQ(config.objective.train_batch_size, 64);
  EXPECT_TRUE(config.autotuning.tuner_type_given);
}

TEST_F(SearchKeys, AnObjectiveMayBeItsMetricAlone) {
  EXPECT_EQ(read(R"("objective": "latency")").autotuning.metric, Metric::latency);
}

TEST_F(SearchKeys, AFixedBatchIsNoBoundToWarnOf) {
  const auto config = read(R"("objective": {"fixed_batch": true})", R"(, "train_batch_size": 64)");

  EXPECT_TRUE(config.warnings.empty());
}

TEST_F(SearchKeys, FaultsAreSaidWithTheirPlaces) {
  EXPECT_THAT(
      faults(R"("tuner": "clever", "stop_at_chance": 2, "time_budget": "20",
                "objective": {"metric": "speed", "memory_headroom": -1, "batch": 3})"),
      ElementsAre(
          testing::StartsWith("/dstune/tuner  is \"clever\"; accepted: \"fast\""),
          testing::StartsWith("/dstune/stop_at_chance  is 2; accepted: "),
          "/dstune/time_budget  is \"20\"; accepted: a time above 0 such as \"90s\", \"20min\" or "
          "\"1h 30min\"",
          testing::StartsWith("/dstune/objective/metric  is \"speed\"; accepted: \"throughput\""),
          testing::StartsWith("/dstune/objective/batch"),
          testing::StartsWith("/dstune/objective/memory_headroom  is -1; accepted: a size")));
  EXPECT_THAT(faults(R"("time_budget": 20)").size(), 1);
  EXPECT_THAT(faults(R"("objective": 7)").size(), 1);
  EXPECT_THAT(faults(R"("objective": "speed")"),
              ElementsAre(testing::StartsWith("/dstune/objective  is \"speed\"; accepted: ")));
}

TEST_F(SearchKeys, AFixedBatchNeedsOne) {
  EXPECT_THAT(faults(R"("objective": {"fixed_batch": true})"),
              ElementsAre("/dstune/objective/fixed_batch  is true, but the file has no "
                          "train_batch_size; accepted: true with one"));
  EXPECT_THAT(faults(R"("objective": {"fixed_batch": "maybe"})", R"(, "train_batch_size": 64)"),
              ElementsAre(testing::StartsWith("/dstune/objective/fixed_batch  is \"maybe\"")));
}

TEST_F(SearchKeys, EveryTunerKeepsTheBatchOfTheFileUnlessTold) {
  const char* batch = R"(, "train_batch_size": 64)";

  EXPECT_EQ(read(R"("tuner": "fast")", batch).objective.train_batch_size, 64);
  EXPECT_EQ(read(R"("objective": "latency")", batch).objective.train_batch_size, 64);
  EXPECT_EQ(read(R"("objective": {"fixed_batch": false})", batch).objective.train_batch_size,
            std::nullopt);
}

}  // namespace
}  // namespace dstune::search_keys_test
