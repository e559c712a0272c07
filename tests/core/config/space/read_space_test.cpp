#include "core/config/space/read_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"

namespace dstune::read_space_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Faults;
using testing_support::faults_in;

constexpr std::int64_t kHidden = 768;

/// A file and the space in it.
struct Taken {
  json::object file;
  SpaceConfig space;
  Faults faults;
};

Taken take(std::string_view text, bool fast = true) {
  Taken taken{parse_json(text).as_object(), {}, {}};
  Problems problems("config.json");
  taken.space = take_space(taken.file, fast, kHidden, problems);
  taken.faults = faults_in(problems);
  return taken;
}

// "/a [1,2]" of each axis, those of a group joined by " ~ ".
std::vector<std::string> axes(const std::vector<AxisGroup>& groups) {
  std::vector<std::string> texts;
  for (const AxisGroup& group : groups) {
    std::vector<std::string> tied;
    for (const Axis& axis : group.tied) {
      const json::array values(axis.values.begin(), axis.values.end());
      tied.push_back(concat(axis.pointer, ' ', to_json_text(values, 0)));
    }
    texts.push_back(join(tied, " ~ "));
  }
  return texts;
}

std::vector<std::string> axes(std::string_view text) {
  const Taken taken = take(text);
  EXPECT_THAT(taken.faults, ElementsAre());
  return axes(taken.space.all_stages);
}

Faults faults(std::string_view text) { return take(text).faults; }

TEST(TakeSpace, IsEmptyWithoutLists) {
  const Taken taken = take(R"({"zero_optimization": {"overlap_comm": true}})");

  EXPECT_TRUE(taken.space.empty());
  EXPECT_EQ(to_json_text(taken.file, 0), R"({"zero_optimization":{"overlap_comm":true}})");
}

TEST(TakeSpace, TakesListsWhereDeepSpeedHasScalars) {
  const Taken taken = take(R"({
    "communication_data_type": ["fp32", "bf16"],
    "gradient_accumulation_steps": [1, 4],
    "optimizer": {"type": ["AdamW", "Lamb"], "params": {"lr": [1e-3, 1e-4]}},
    "zero_optimization": {"prefetch_bucket_size": [5e7, 0], "overlap_comm": ["true", false]}})");

  EXPECT_THAT(taken.faults, ElementsAre());
  EXPECT_THAT(
      axes(taken.space.all_stages),
      ElementsAre(R"(/communication_data_type ["fp32","bf16"])",
                  "/gradient_accumulation_steps [1,4]", R"(/optimizer/type ["AdamW","Lamb"])",
                  "/optimizer/params/lr [0.001,0.0001]",
                  "/zero_optimization/stage3_prefetch_bucket_size [50000000,0]",
                  "/zero_optimization/overlap_comm [true,false]"));
  EXPECT_EQ(to_json_text(taken.file, 0),
            R"({"communication_data_type":"fp32","gradient_accumulation_steps":1,)"
            R"("optimizer":{"type":"AdamW","params":{"lr":0.001}},)"
            R"("zero_optimization":{"prefetch_bucket_size":50000000,"overlap_comm":true}})");
}

TEST(TakeSpace, LeavesListsThatDeepSpeedReadsItself) {
  const std::string text =
      R"({"optimizer":{"type":"AdamW","params":{"betas":[0.9,0.95],"mine":[1,2]}},)"
      R"("scheduler":{"type":"OneCycle","params":{"steps":[1,2]}},)"
      R"("zero_optimization":{"leaf_module":{"classes":["A","B"]},"stage":[1,2]},)"
      R"("train_micro_batch_size_per_gpu":[1,2],"unknown":[1,2]})";

  const Taken taken = take(text);

  EXPECT_TRUE(taken.space.empty());
  EXPECT_EQ(to_json_text(taken.file, 0), text);
}

TEST(TakeSpace, AListOfOneValueIsThatValue) {
  const Taken taken = take(R"({"zero_optimization": {"reduce_bucket_size": [5e8]}})");

  EXPECT_TRUE(taken.space.empty());
  EXPECT_EQ(to_json_text(taken.file, 0),
            R"({"zero_optimization":{"reduce_bucket_size":500000000}})");
}

TEST(TakeSpace, KeepsTheSpellingForNamesAndEachValueOnce) {
  const Taken taken = take(R"({"zero_optimization": {"sub_group_size": [4e3, 4000, 5000]}})");

  ASSERT_EQ(taken.space.all_stages.size(), 1U);
  const Axis& axis = taken.space.all_stages[0].tied[0];
  EXPECT_EQ(axis.values, (std::vector<json::value>{4000, 5000}));
  EXPECT_EQ(axis.spelt, (std::vector<json::value>{4e3, 5000}));
}

TEST(TakeSpace, ReadsPointersOfAllStagesAndOfOne) {
  const Taken taken = take(R"({"dstune": {"space": {
    "/zero_optimization/overlap_comm": [true, false],
    "z3": {"/zero_optimization/overlap_comm": [true], "/zero_optimization/sub_group_size": [1, 2]}
  }}})");

  EXPECT_THAT(taken.faults, ElementsAre());
  EXPECT_THAT(axes(taken.space.axes_of(2)),
              ElementsAre("/zero_optimization/overlap_comm [true,false]"));
  EXPECT_THAT(axes(taken.space.axes_of(3)), ElementsAre("/zero_optimization/overlap_comm [true]",
                                                        "/zero_optimization/sub_group_size [1,2]"));
}

TEST(TakeSpace, ResolvesWhatTheModelDecides) {
  EXPECT_THAT(axes(R"({"dstune": {"space": {
    "/zero_optimization/stage3_prefetch_bucket_size": ["auto", "0.9*h*h", "h * h", 7],
    "/zero_optimization/stage3_param_persistence_threshold": ["auto", "10*h", "h"]}}})"),
              ElementsAre("/zero_optimization/stage3_prefetch_bucket_size [530841,589824,7]",
                          "/zero_optimization/stage3_param_persistence_threshold [7680,768]"));
}

TEST(TakeSpace, ReadsRanges) {
  EXPECT_THAT(
      axes(R"({"dstune": {"space": {
    "/zero_optimization/reduce_bucket_size": {"from": 1e6, "to": 1e8, "per_decade": 2},
    "/zero_optimization/sub_group_size": {"powers_of": 2, "from": "h", "to": 4096},
    "/gradient_clipping": {"from": 0, "to": 1, "step": 0.25}}}})"),
      ElementsAre(
          "/zero_optimization/reduce_bucket_size [1000000,3162278,10000000,31622777,100000000]",
          "/zero_optimization/sub_group_size [1024,2048,4096]",
          "/gradient_clipping [0.0,0.25,0.5,0.75,1.0]"));
}

TEST(TakeSpace, ReadsAListOfListsWhereValuesAreLists) {
  EXPECT_THAT(
      axes(R"({"dstune": {"space": {"/optimizer/params/betas": [[0.9, 0.99], [0.8, 0.9]]}}})"),
      ElementsAre("/optimizer/params/betas [[0.9,0.99],[0.8,0.9]]"));
}

TEST(TakeSpace, TiesThePrecisions) {
  const Taken taken = take(R"({"dstune": {"precision": ["bf16", "fp16", "fp32"]}})");

  EXPECT_THAT(axes(taken.space.all_stages),
              ElementsAre("/bf16/enabled [true,false,false] ~ /fp16/enabled [false,true,false]"));
  EXPECT_EQ(taken.file.at("bf16").at("enabled"), true);
  EXPECT_EQ(taken.file.at("fp16").at("enabled"), false);
}

TEST(TakeSpace, FillsVariables) {
  const Taken taken = take(R"({
    "zero_optimization": {"reduce_bucket_size": "$K", "overlap_comm": "$O",
                          "stage3_prefetch_bucket_size": "$K"},
    "wandb": {"project": "run-$K-$$", "group": "$$x"},
    "dstune": {"variables": {"K": [5e8, 6e8], "O": [true, false]}}})");

  EXPECT_THAT(taken.faults, ElementsAre());
  EXPECT_THAT(axes(taken.space.all_stages),
              ElementsAre("/zero_optimization/reduce_bucket_size [500000000,600000000] ~ "
                          "/zero_optimization/stage3_prefetch_bucket_size [500000000,600000000] ~ "
                          R"(/wandb/project ["run-500000000.0-$","run-600000000.0-$"])",
                          "/zero_optimization/overlap_comm [true,false]"));
  EXPECT_EQ(taken.file.at("wandb").at("group"), "$x");
  EXPECT_EQ(taken.file.at("wandb").at("project"), "run-500000000.0-$");
  EXPECT_EQ(taken.file.at("zero_optimization").at("reduce_bucket_size"), 500000000);
}

TEST(TakeSpace, ZipsVariables) {
  EXPECT_THAT(axes(R"({"zero_optimization": {"reduce_bucket_size": "$A", "sub_group_size": "$B",
                                             "overlap_comm": "$C"},
    "dstune": {"variables": {"A": [1, 2], "C": [true, false], "B": [3, 4]}, "zip": ["A", "B"]}})"),
              ElementsAre("/zero_optimization/overlap_comm [true,false]",
                          "/zero_optimization/reduce_bucket_size [1,2] ~ "
                          "/zero_optimization/sub_group_size [3,4]"));
}

TEST(TakeSpace, VariablesThatShareAStringAreOneGroup) {
  EXPECT_THAT(
      axes(R"({"zero_optimization": {"reduce_bucket_size": "$A"}, "wandb": {"project": "$A.$B"},
    "dstune": {"variables": {"A": [1, 2], "B": ["x", "y"]}}})"),
      ElementsAre("/zero_optimization/reduce_bucket_size [1,1,2,2] ~ "
                  R"(/wandb/project ["1.x","1.y","2.x","2.y"])"));
}

TEST(TakeSpace, WithoutVariablesADollarIsADollar) {
  EXPECT_EQ(take(R"({"wandb": {"project": "$HOME$$"}})").file.at("wandb").at("project"), "$HOME$$");
}

TEST(TakeSpace, NamesEveryFaultOfVariables) {
  EXPECT_THAT(faults(R"({"wandb": {"project": "$X"}, "zero_optimization": {"stage": "$S"},
        "dstune": {"model": "$A", "variables": {"A": [1], "S": [1, 2], "U": [1], "1x": [1], "E": []},
                   "zip": ["A", "S", "Q"]}})"),
              testing::UnorderedElementsAre(
                  HasSubstr("/wandb/project  holds $X, which dstune.variables does not define"),
                  HasSubstr("/zero_optimization/stage  is what the search chooses"),
                  HasSubstr("/dstune/model  holds a variable, but is the same"),
                  "/dstune/variables/U  is used nowhere",
                  HasSubstr("/dstune/variables/1x  is not a valid name"),
                  HasSubstr("/dstune/variables/E  is an empty list"),
                  "/dstune/zip  holds \"Q\", which dstune.variables does not",
                  "/dstune/zip  ties S, which has 2 values, to A, which has 1"));
}

TEST(TakeSpace, NamesEveryFaultOfLists) {
  EXPECT_THAT(
      faults(R"({"zero_optimization": {"reduce_bucket_size": [0, 5, "x"], "overlap_comm": [],
                                       "stage3_max_live_parameters": ["auto"]}})"),
      ElementsAre(
          "/zero_optimization/reduce_bucket_size/0  is 0; accepted: an integer from 1 to "
          "1000000000000000",
          "/zero_optimization/reduce_bucket_size/2  is \"x\"; accepted: an integer from 1 to "
          "1000000000000000",
          HasSubstr("/zero_optimization/overlap_comm  is an empty list"),
          HasSubstr("/zero_optimization/stage3_max_live_parameters/0  is \"auto\", which")));
}

TEST(TakeSpace, SearchesNoOldFormsAndNoSectionThatHoldsTheStage) {
  EXPECT_THAT(faults(R"({"zero_optimization": [{"stage": 1}, {"stage": 2}]})"),
              ElementsAre("/zero_optimization  is searched key by key, not as a whole"));
  EXPECT_THAT(
      faults(R"({"zero_optimization": {"cpu_offload": [true, false]}})"),
      ElementsAre("/zero_optimization/cpu_offload  is the old form of \"offload_optimizer\"; "
                  "search that"));
}

TEST(TakeSpace, SearchesSections) {
  EXPECT_THAT(axes(R"({"optimizer": [{"type": "AdamW"}, {"type": "SGD", "params": {"lr": 1}}]})"),
              ElementsAre(R"(/optimizer [{"type":"AdamW"},{"type":"SGD","params":{"lr":1}}])"));
}

TEST(TakeSpace, NamesEveryFaultOfDstuneSpace) {
  EXPECT_THAT(
      faults(R"({"zero_optimization": {"overlap_comm": [true, false]}, "dstune": {"space": {
        "reduce_bucket_size": [1], "/zero_optimization/reduce_bucket_siz": [1],
        "/train_batch_size": [8], "/dstune/model": ["gpt2"], "z1": 5,
        "/zero_optimization/overlap_comm": [true, false],
        "/zero_optimization/sub_group_size": {"from": 5, "to": 1, "step": 1},
        "/zero_optimization/stage3_max_live_parameters": {"from": 0, "to": 9, "per_decade": 1},
        "/zero_optimization/stage3_max_reuse_distance": {"from": 1, "to": 1e9, "step": 1},
        "/zero_optimization/reduce_scatter": {"from": 1, "to": 2}}}})"),
      testing::UnorderedElementsAre(
          HasSubstr("/dstune/space/reduce_bucket_size  is not a JSON pointer"),
          HasSubstr("is a key that DeepSpeed does not know; did you mean \"reduce_bucket_size\"?"),
          HasSubstr("/dstune/space/~1train_batch_size  is what the search chooses"),
          HasSubstr("/dstune/space/~1dstune~1model  is the same in all experiments"),
          HasSubstr("/dstune/space/z1  is 5; accepted: {POINTER: values}"),
          "/zero_optimization/overlap_comm  is in two search lists; keep one of them",
          HasSubstr("needs \"from\" and a \"to\" that is not below it"),
          HasSubstr("starts at or below 0, where only \"step\""),
          HasSubstr("makes more than 1000 values"),
          HasSubstr("needs one of \"per_decade\", \"step\" and \"powers_of\"")));
}

TEST(TakeSpace, RefusesMoreConfigurationsThanAnybodyCouldTry) {
  EXPECT_THAT(faults(R"({"dstune": {"space": {
    "/zero_optimization/reduce_bucket_size": {"from": 1, "to": 999, "step": 1},
    "/zero_optimization/sub_group_size": {"from": 1, "to": 999, "step": 1},
    "/zero_optimization/stage3_max_live_parameters": {"from": 1, "to": 999, "step": 1}}}})"),
              ElementsAre(HasSubstr("make more than 10000000 configurations in stage 0")));
}

TEST(TakeSpace, FullModeSearchesDefaultSpaces) {
  const SpaceConfig nothing = take("{}", false).space;
  const SpaceConfig lists =
      take(R"({"zero_optimization": {"overlap_comm": [true, false]}})", false).space;
  const SpaceConfig own = take(R"({"dstune": {"space": "default"}})", true).space;

  EXPECT_TRUE(nothing.with_default && nothing.with_deepspeeds);
  EXPECT_TRUE(lists.with_deepspeeds && !lists.with_default);
  EXPECT_TRUE(own.with_default && !own.with_deepspeeds);
}

}  // namespace
}  // namespace dstune::read_space_test
