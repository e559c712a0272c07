#include "core/search/space/space.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::space_test {
namespace {

using testing::ElementsAre;
using testing_support::TemporaryDirectory;

TuningConfig read(json::object file) {
  const TemporaryDirectory directory;
  if (!file.contains("dstune")) file["dstune"] = {{"model", "gpt2"}};
  CommandLine options;
  options.config_path = directory / "config.json";
  testing_support::write_file(options.config_path, to_json_text(file, 0));
  return read_tuning_config(options);
}

TuningConfig read(std::string_view text) { return read(parse_json(text).as_object()); }

// 5e8 and 500000000 are one number.
json::value with_integers(const json::value& value) {
  if (const auto integer = as_integer(value)) return *integer;
  json::value result = value;
  if (result.is_object()) {
    for (auto& member : result.get_object()) member.value() = with_integers(member.value());
  } else if (result.is_array()) {
    for (auto& element : result.get_array()) element = with_integers(element);
  }
  return result;
}

using Named = std::multimap<std::string, std::string>;  // names and configurations

Named named(const Space& space) {
  Named all;
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    const Candidate candidate = space.at(i);
    all.emplace(candidate.name,
                to_json_text(sorted_by_key(with_integers(candidate.ds_config.json())), 0));
  }
  return all;
}

Named named(const json::array& experiments) {
  Named all;
  for (const auto& pair : experiments) {
    const auto& experiment = pair.as_array();
    json::object config = experiment[1].as_object();
    // DeepSpeed gives files without an optimizer an empty one, which means the same.
    const auto* const optimizer = config.if_contains("optimizer");
    if (optimizer != nullptr && optimizer->as_object().empty()) config.erase("optimizer");
    all.emplace(experiment[0].as_string(), to_json_text(sorted_by_key(with_integers(config)), 0));
  }
  return all;
}

// Only of names that DeepSpeed gives twice do ours end in a number.
std::string without_number(const std::string& name, const Named& deepspeeds) {
  const std::size_t mark = name.rfind('_');
  return deepspeeds.contains(name) || mark == std::string::npos ? name : name.substr(0, mark);
}

class DeepSpeedsSpaces : public testing::TestWithParam<std::size_t> {};

json::value fixture() {
  static const json::value file =
      parse_json(read_text_file(test::test_data("deepspeed_names.json")));
  return file;
}

TEST_P(DeepSpeedsSpaces, HaveItsConfigurationsUnderItsNames) {
  const json::value all = fixture();
  const json::object& given = all.at("cases").as_array().at(GetParam()).as_object();
  const int stage = given.at("stage").to_number<int>();
  TuningConfig config = read(given.at("file").as_object());
  config.space.with_deepspeeds = given.at("deepspeeds").as_bool();
  std::vector<Point> points;
  for (const auto& size : all.at("micro_batches").as_array()) {
    points.push_back({stage, size.as_int64(), all.at("samples").as_int64() / size.as_int64()});
  }
  const auto spaces = make_spaces(config, all.at("ranks").to_number<int>(), stage, points);
  const bool is_fast = !given.at("deepspeeds").as_bool() || stage == 0;

  const Named deepspeeds = named(given.at("experiments").as_array());
  Named ours;
  std::set<std::string> names;
  for (auto& [name, text] : named(spaces.at(is_fast ? 0 : 1))) {
    names.insert(name);
    ours.emplace(without_number(name, deepspeeds), text);
  }

  if (stage > 0 || !given.at("deepspeeds").as_bool()) {
    EXPECT_EQ(ours, deepspeeds);
  }
  EXPECT_EQ(names.size(), deepspeeds.size());
}

INSTANTIATE_TEST_SUITE_P(Fixture, DeepSpeedsSpaces,
                         testing::Range(std::size_t{0}, std::size_t{26}));

TEST(DeepSpeedsNames, FixtureHoldsAllDefaultSpacesAndTwentyOfOurs) {
  int deepspeeds = 0;
  const json::value all = fixture();
  for (const auto& one : all.at("cases").as_array()) {
    if (one.at("deepspeeds").as_bool()) ++deepspeeds;
  }

  EXPECT_EQ(all.at("cases").as_array().size(), 26U);
  EXPECT_EQ(deepspeeds, 6);
}

TEST(Space, WithoutListsHasTheNamesOfTheFastMode) {
  const auto spaces = make_spaces(read("{}"), 8, 2, {{2, 4, 1}, {2, 2, 2}});

  ASSERT_EQ(spaces.size(), 1U);
  ASSERT_EQ(spaces[0].size(), 2U);
  EXPECT_EQ(spaces[0].at(1).name, "z2_gas2_tmbspg2");
  EXPECT_EQ(to_json_text(spaces[0].at(1).ds_config.json(), 0),
            R"({"train_batch_size":32,"train_micro_batch_size_per_gpu":2,)"
            R"("gradient_accumulation_steps":2,"zero_optimization":{"stage":2}})");
}

TEST(Space, LastListMovesFastestAndMicroBatchesFaster) {
  const auto config =
      read(R"({"zero_optimization": {"overlap_comm": [true, false], "sub_group_size": [1, 2]}})");

  const Space space = make_spaces(config, 1, 3, {{3, 1, 1}, {3, 2, 1}})[0];

  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < space.size(); ++i) names.push_back(space.name(i));
  EXPECT_THAT(names, ElementsAre("z3_tmbspg1_ocT_sgs1_gas1", "z3_tmbspg2_ocT_sgs1_gas1",
                                 "z3_tmbspg1_ocT_sgs2_gas1", "z3_tmbspg2_ocT_sgs2_gas1",
                                 "z3_tmbspg1_ocF_sgs1_gas1", "z3_tmbspg2_ocF_sgs1_gas1",
                                 "z3_tmbspg1_ocF_sgs2_gas1", "z3_tmbspg2_ocF_sgs2_gas1"));
}

TEST(Space, SetsWhatIsTiedTogether) {
  const auto config = read(R"({"dstune": {"model": "gpt2", "precision": ["bf16", "fp16"]}})");

  const Space space = make_spaces(config, 1, 1, {{1, 1, 1}})[0];

  ASSERT_EQ(space.size(), 2U);
  EXPECT_EQ(space.name(1), "z1_eF_eT_tmbspg1_gas1");
  EXPECT_EQ(space.at(1).ds_config.json().at("fp16").at("enabled"), true);
  EXPECT_EQ(space.at(1).ds_config.json().at("bf16").at("enabled"), false);
}

TEST(Space, NamesThatWouldCollideEndInAStableNumber) {
  const auto config =
      read(R"({"zero_optimization": {"reduce_bucket_size": [50000001, 50000002]}})");

  const Space space = make_spaces(config, 1, 1, {{1, 1, 1}})[0];

  EXPECT_EQ(space.name(0), "z1_tmbspg1_rbs5.0e+07_gas1");
  EXPECT_EQ(space.name(1), "z1_tmbspg1_rbs5.0e+07_gas1_62c9009f");
}

TEST(Space, NamesAreFoldersWhateverTheValues) {
  const std::string many(300, 'x');
  const auto config = read(concat(R"({"wandb": {"project": ["a/b", ")", many, R"("]}})"));

  const Space space = make_spaces(config, 1, 0, {{0, 1, 1}})[0];

  EXPECT_EQ(space.name(0), "z0_tmbspg1_pa-b_gas1");
  EXPECT_EQ(space.name(1).size(), 209U);
}

TEST(Space, SearchesAccumulationSteps) {
  const auto config = read(R"({"gradient_accumulation_steps": [1, 4]})");

  const Space space = make_spaces(config, 2, 1, {{1, 3, 7}})[0];

  ASSERT_EQ(space.size(), 2U);
  EXPECT_EQ(space.point(1), (Point{1, 3, 4}));
  EXPECT_EQ(space.at(1).ds_config.json().at("train_batch_size"), 24);
  EXPECT_EQ(space.name(1), "z1_gas4_tmbspg3");
}

std::vector<std::string> pointers(const Space& space) {
  std::vector<std::string> all;
  for (const AxisGroup& group : space.axes()) {
    for (const Axis& axis : group.tied) all.push_back(axis.pointer);
  }
  return all;
}

TEST(MakeSpaces, DefaultSpacesLeaveAloneWhatTheUserChose) {
  const auto config = read(R"({"autotuning": {"fast": false}, "dstune": {"model": "gpt2"},
    "zero_optimization": {"overlap_comm": true, "reduce_bucket_size": "auto"}})");

  const auto spaces = make_spaces(config, 8, 1, {{1, 1, 1}});

  ASSERT_EQ(spaces.size(), 3U);
  EXPECT_THAT(pointers(spaces[1]), ElementsAre("/zero_optimization/reduce_bucket_size",
                                               "/zero_optimization/allgather_bucket_size"));
  EXPECT_EQ(spaces[1].at(0).ds_config.json().at("zero_optimization").at("overlap_comm"), true);
  EXPECT_THAT(pointers(spaces[2]), ElementsAre("/zero_optimization/contiguous_gradients",
                                               "/zero_optimization/reduce_scatter",
                                               "/zero_optimization/reduce_bucket_size",
                                               "/zero_optimization/use_multi_rank_bucket_allreduce",
                                               "/zero_optimization/round_robin_gradients"));
}

TEST(MakeSpaces, OurValuesAreTheModelsSizes) {
  const auto config = read(R"({"autotuning": {"fast": false}, "dstune": {"model": "gpt2"}})");

  const Space ours = make_spaces(config, 8, 3, {{3, 1, 1}})[2];

  std::map<std::string, std::vector<json::value>> values;
  for (const AxisGroup& group : ours.axes()) values[group.tied[0].pointer] = group.tied[0].values;
  EXPECT_EQ(values["/zero_optimization/reduce_bucket_size"],
            (std::vector<json::value>{7087872, 28351488, 124439808}));
  EXPECT_EQ(values["/zero_optimization/stage3_prefetch_bucket_size"],
            (std::vector<json::value>{0, 7087872, 28351488}));
  EXPECT_EQ(values["/zero_optimization/stage3_param_persistence_threshold"],
            (std::vector<json::value>{0, 7680, 124439808}));
  EXPECT_EQ(values["/zero_optimization/sub_group_size"][0], 885984);
}

TEST(MakeSpaces, StageZeroHasTheUsersSpaceAlone) {
  const auto config = read(R"({"autotuning": {"fast": false}, "dstune": {"model": "gpt2"}})");

  EXPECT_EQ(make_spaces(config, 8, 0, {{0, 1, 1}}).size(), 1U);
}

}  // namespace
}  // namespace dstune::space_test
