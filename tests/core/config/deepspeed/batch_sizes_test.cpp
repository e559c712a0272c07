#include "core/config/deepspeed/batch_sizes.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "tests/core/config/faults.hpp"

namespace dstune::batch_sizes_test {
namespace {

using testing_support::Faults;
using testing_support::faults_in;
using Sizes = std::vector<std::int64_t>;

struct Read {
  TuningConfig config;
  Faults faults;
};

Read read_batches(const char* text, std::optional<int> ranks = std::nullopt,
                  const AutotuningConfig& autotuning = {}) {
  Problems problems("config.json");
  Read read;
  read.config.autotuning = autotuning;
  read_batch_sizes(json::parse(text).as_object(), ranks, read.config, problems);
  read.faults = faults_in(problems);
  return read;
}

std::vector<int> read_stage_list(const char* text) {
  Problems problems("config.json");
  const auto stages = read_stages(json::parse(text).as_object(), problems);
  problems.throw_if_any();
  return stages;
}

Faults faults_of_stage(const std::string& stage) {
  Problems problems("config.json");
  read_stages(json::parse(R"({"zero_optimization":{"stage":)" + stage + "}}").as_object(),
              problems);
  return faults_in(problems);
}

TEST(ReadStages, ExploresAllUnlessTold) {
  const std::vector<int> all = {0, 1, 2, 3};

  EXPECT_EQ(read_stage_list("{}"), all);
  EXPECT_EQ(read_stage_list(R"({"zero_optimization":{}})"), all);
  EXPECT_EQ(read_stage_list(R"({"zero_optimization":{"stage":"all"}})"), all);
  EXPECT_EQ(read_stage_list(R"({"zero_optimization":{"stage":"auto"}})"), all);
}

TEST(ReadStages, TakesOneOrAListInAnyOrder) {
  EXPECT_EQ(read_stage_list(R"({"zero_optimization":{"stage":2}})"), std::vector<int>{2});
  EXPECT_EQ(read_stage_list(R"({"zero_optimization":{"stage":[3,1,3.0]}})"),
            (std::vector<int>{1, 3}));
}

TEST(ReadStages, RejectsWhatIsNoStage) {
  const std::string accepted = "; accepted: 0, 1, 2, 3, a list of them, \"all\" or \"auto\"";
  const std::string where = "/zero_optimization/stage  is ";

  EXPECT_EQ(faults_of_stage("7"), Faults{where + "7" + accepted});
  EXPECT_EQ(faults_of_stage("-1"), Faults{where + "-1" + accepted});
  EXPECT_EQ(faults_of_stage("1.5"), Faults{where + "1.5" + accepted});
  EXPECT_EQ(faults_of_stage("\"two\""), Faults{where + "\"two\"" + accepted});
  EXPECT_EQ(faults_of_stage("null"), Faults{where + "null" + accepted});
  EXPECT_EQ(faults_of_stage("[]"), Faults{where + "an empty list" + accepted});
  EXPECT_EQ(faults_of_stage("[1, 4]"),
            Faults{"/zero_optimization/stage/1  is 4; accepted: an integer from 0 to 3"});
}

TEST(ReadBatchSizes, SearchesFromOneByDefault) {
  for (const char* text :
       {"{}",
        R"({"train_micro_batch_size_per_gpu":"auto","gradient_accumulation_steps":"auto",)"
        R"("train_batch_size":"auto"})",
        R"({"train_micro_batch_size_per_gpu":null,"gradient_accumulation_steps":null,)"
        R"("train_batch_size":null})"}) {
    const auto read = read_batches(text);

    EXPECT_EQ(read.faults, Faults{});
    EXPECT_EQ(read.config.micro_batches, Sizes{});
    EXPECT_EQ(read.config.start_micro_batch, 1);
    EXPECT_EQ(read.config.accumulation_steps, 1);
    EXPECT_TRUE(read.config.warnings.empty());
  }
}

TEST(ReadBatchSizes, StartsFromTheMicroBatchOfTheFile) {
  const auto read =
      read_batches(R"({"train_micro_batch_size_per_gpu":8,"gradient_accumulation_steps":4.0})");

  EXPECT_EQ(read.config.micro_batches, Sizes{});
  EXPECT_EQ(read.config.start_micro_batch, 8);
  EXPECT_EQ(read.config.accumulation_steps, 4);
}

TEST(ReadBatchSizes, TriesExactlyTheMicroBatchesOfAList) {
  const auto read = read_batches(R"({"train_micro_batch_size_per_gpu":[8,2,8,4e0]})");

  EXPECT_EQ(read.config.micro_batches, (Sizes{2, 4, 8}));
}

TEST(ReadBatchSizes, RejectsAListThatNobodyCanTry) {
  std::string sizes = "1";
  for (int i = 2; i <= 1001; ++i) sizes += "," + std::to_string(i);

  const auto read = read_batches((R"({"train_micro_batch_size_per_gpu":[)" + sizes + "]}").c_str());

  const Faults expected = {
      "/train_micro_batch_size_per_gpu  has 1001 values; accepted: at most 1000"};
  EXPECT_EQ(read.faults, expected);
}

TEST(ReadBatchSizes, RejectsWhatIsNoSize) {
  const auto faults = read_batches(R"({"train_batch_size":-4,"train_micro_batch_size_per_gpu":0,)"
                                   R"("gradient_accumulation_steps":"four"})")
                          .faults;

  EXPECT_EQ(faults,
            (Faults{"/train_micro_batch_size_per_gpu  is 0; accepted: an integer from 1 to "
                    "1000000000, a list of them, or \"auto\"",
                    "/train_batch_size  is -4; accepted: an integer from 1 to 1000000000, or "
                    "\"auto\"",
                    "/gradient_accumulation_steps  is \"four\"; accepted: an integer from 1 to "
                    "1000000000, or \"auto\""}));
  EXPECT_EQ(read_batches(R"({"train_micro_batch_size_per_gpu":[4,0,"x"]})").faults,
            (Faults{"/train_micro_batch_size_per_gpu/1  is 0; accepted: an integer from 1 to "
                    "1000000000",
                    "/train_micro_batch_size_per_gpu/2  is \"x\"; accepted: an integer from 1 to "
                    "1000000000"}));
}

TEST(ReadBatchSizes, RejectsAStartOutsideTheLimitsOfAutotuning) {
  AutotuningConfig limits;
  limits.max_train_micro_batch_size_per_gpu = 4;

  EXPECT_EQ(read_batches(R"({"train_micro_batch_size_per_gpu":8})", {}, limits).faults,
            Faults{"/train_micro_batch_size_per_gpu  is 8, outside the 1 to 4 of autotuning's "
                   "{min,max}_train_micro_batch_size_per_gpu"});
}

TEST(ReadBatchSizes, HoldsAListToALimitThatTheFileItselfSays) {
  const auto free = read_batches(R"({"train_micro_batch_size_per_gpu":[4,2048]})");
  AutotuningConfig limits;
  limits.max_train_micro_batch_size_per_gpu = 1024;
  const auto limited = read_batches(R"({"train_micro_batch_size_per_gpu":[4,2048],)"
                                    R"("autotuning":{"max_train_micro_batch_size_per_gpu":1024}})",
                                    {}, limits);

  EXPECT_EQ(free.faults, Faults{});
  EXPECT_EQ(free.config.autotuning.max_train_micro_batch_size_per_gpu, 2048);
  EXPECT_EQ(limited.faults,
            Faults{"/train_micro_batch_size_per_gpu  is 2048, outside the 1 to 1024 "
                   "of autotuning's {min,max}_train_micro_batch_size_per_gpu"});
}

constexpr const char* kTriple =
    R"({"train_batch_size":24,"train_micro_batch_size_per_gpu":4,"gradient_accumulation_steps":3})";

TEST(ReadBatchSizes, ChecksTheTripleWithTheRanks) {
  EXPECT_EQ(read_batches(kTriple, 2).faults, Faults{});
  EXPECT_EQ(read_batches(kTriple, 3).faults,
            Faults{"/train_batch_size  is 24, but micro-batch 4 x accumulation steps 3 x 3 ranks "
                   "are 36; what works is 36, or \"auto\" for the micro-batch or the accumulation "
                   "steps"});
}

TEST(ReadBatchSizes, ChecksWhatItCanWithoutTheRanks) {
  EXPECT_EQ(read_batches(kTriple).faults, Faults{});
  EXPECT_EQ(read_batches(R"({"train_batch_size":20,"train_micro_batch_size_per_gpu":8})").faults,
            Faults{"/train_batch_size  is 20, which is not a multiple of micro-batch 8; the "
                   "nearest that work are 16 and 24"});
  EXPECT_EQ(read_batches(R"({"train_batch_size":20,"gradient_accumulation_steps":2})", 3).faults,
            Faults{"/train_batch_size  is 20, which is not a multiple of accumulation steps 2 x 3 "
                   "ranks; the nearest that work are 18 and 24"});
}

TEST(ReadBatchSizes, KeepsTheGlobalBatchOfTheFile) {
  const auto read = read_batches(R"({"train_batch_size":64})");

  EXPECT_EQ(read.config.objective.train_batch_size, 64);
  EXPECT_EQ(read.config.autotuning.max_train_batch_size, 64);
  EXPECT_TRUE(read.config.warnings.empty());
}

TEST(ReadBatchSizes, RejectsABatchAboveTheBoundOfAutotuning) {
  AutotuningConfig limits;
  limits.max_train_batch_size = 16;

  EXPECT_EQ(read_batches(R"({"train_batch_size":64})", {}, limits).faults,
            Faults{"/train_batch_size  is 64, above autotuning.max_train_batch_size, 16"});
}

TEST(ReadBatchSizes, SaysThatAccumulationFollowsFromAListOfMicroBatches) {
  const auto read = read_batches(R"({"train_batch_size":64,"gradient_accumulation_steps":4,)"
                                 R"("train_micro_batch_size_per_gpu":[2,4]})");

  EXPECT_EQ(read.config.warnings,
            std::vector<std::string>{"/gradient_accumulation_steps 4 is not used: it follows from "
                                     "train_batch_size and each micro-batch of the list"});
}

TEST(ReadBatchSizes, SaysThatAccumulationBesideANumberOfMicroBatchesIsNotKept) {
  EXPECT_EQ(read_batches(kTriple, 2).config.warnings,
            std::vector<std::string>{"/gradient_accumulation_steps 3 is not kept: it follows from "
                                     "train_batch_size and each micro-batch that is tried"});
  EXPECT_EQ(
      read_batches(R"({"train_batch_size":24,"gradient_accumulation_steps":3})", 2).config.warnings,
      std::vector<std::string>{})
      << "the micro-batch follows from it";
}

}  // namespace
}  // namespace dstune::batch_sizes_test
