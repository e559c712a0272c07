#include "core/config/read_deepspeed_version.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::read_deepspeed_version_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::Faults;
using testing_support::faults_in;
using testing_support::faults_of;
using testing_support::TemporaryDirectory;
using testing_support::write_file;

struct Read {
  DeepSpeedVersion version;
  std::vector<std::string> warnings;
  Faults faults;
};

Read read(const char* text, const std::optional<std::string>& installed = std::nullopt) {
  Problems problems("config.json");
  const auto version = read_deepspeed_version(parse_json(text).as_object(), installed, problems);
  return {version, problems.warnings(), faults_in(problems)};
}

TEST(ReadDeepSpeedVersion, IsTheFilesThenTheInstalledOneThenTheNewest) {
  const auto* const file = R"({"dstune": {"deepspeed_version": "0.16.9"}})";

  EXPECT_EQ(read(file, "0.18.2").version, (DeepSpeedVersion{0, 16, 9}));
  EXPECT_EQ(read("{}", "0.18.2").version, (DeepSpeedVersion{0, 18, 2}));
  EXPECT_EQ(read("{}").version, kNewestDeepSpeed);
  EXPECT_THAT(read(file, "nonsense").warnings, IsEmpty());
}

TEST(ReadDeepSpeedVersion, TakesTheNewestForWhatIsNewer) {
  const auto result = read(R"({"dstune": {"deepspeed_version": "0.20.0"}})");

  EXPECT_EQ(result.version, kNewestDeepSpeed);
  EXPECT_EQ(result.faults, Faults{});
  EXPECT_THAT(result.warnings, ElementsAre("/dstune/deepspeed_version is 0.20.0, which is newer "
                                           "than all known releases: 0.19.8 is used instead"));
}

TEST(ReadDeepSpeedVersion, RefusesOldOnesAndOtherTexts) {
  EXPECT_EQ(read(R"({"dstune": {"deepspeed_version": "0.14.5"}})").faults,
            Faults{"/dstune/deepspeed_version  is \"0.14.5\"; accepted: a release from 0.15.0 to "
                   "0.19.8 such as \"0.19.8\""});
  EXPECT_EQ(read(R"({"dstune": {"deepspeed_version": "latest"}})").faults.size(), 1U);
}

TEST(ReadDeepSpeedVersion, OnlyWarnsOfWhatIsInstalled) {
  const auto old = read("{}", "0.14.5");
  const auto odd = read("{}", "unknown");

  EXPECT_EQ(old.version, kOldestDeepSpeed);
  EXPECT_EQ(odd.version, kNewestDeepSpeed);
  EXPECT_THAT(old.warnings, ElementsAre(HasSubstr("0.15.0 is used instead")));
  EXPECT_THAT(odd.warnings, ElementsAre(HasSubstr("0.19.8 is used instead")));
  EXPECT_EQ(old.faults, Faults{});
  EXPECT_EQ(odd.faults, Faults{});
}

Faults refused(const char* text, const DeepSpeedVersion& version, const SpaceConfig& space = {}) {
  Problems problems("config.json");
  refuse_later_keys(parse_json(text).as_object(), space, version, problems);
  return faults_in(problems);
}

TEST(RefuseLaterKeys, NamesKeysThatTheReleaseDoesNotKnow) {
  const auto* const text = R"({"zero_optimization": {"allgather_sequential": true,
                                                     "leaf_module": {"names": ["a"]}}})";

  EXPECT_EQ(refused(text, {0, 17, 6}),
            (Faults{"/zero_optimization/leaf_module  is not known to DeepSpeed 0.17.6; accepted: "
                    "from 0.18.0 on",
                    "/zero_optimization/allgather_sequential  is not known to DeepSpeed 0.17.6; "
                    "accepted: from 0.18.5 on"}));
  EXPECT_EQ(refused(text, {0, 18, 5}), Faults{});
}

TEST(RefuseLaterKeys, LooksAtWhatIsSearched) {
  SpaceConfig space;
  space.of_stage[3] = {
      AxisGroup{{Axis{"/zero_optimization/stage3_allgather_sequential", {true, false}}}}};

  EXPECT_EQ(refused("{}", {0, 18, 4}, space).size(), 1U);
  EXPECT_EQ(refused("{}", {0, 18, 5}, space), Faults{});
}

TEST(SetDeepSpeedVersion, SaysNothingOfTheNewest) {
  json::object newest;
  json::object old = {{"dstune", json::object{{"activation_checkpointing", true}}}};

  set_deepspeed_version(kNewestDeepSpeed, newest);
  set_deepspeed_version({0, 16, 9}, old);

  EXPECT_TRUE(newest.empty());
  EXPECT_EQ(old.at("dstune"),
            (json::value{{"activation_checkpointing", true}, {"deepspeed_version", "0.16.9"}}));
}

TEST(TuningConfigOfARelease, SaysItInEveryExperiment) {
  const TemporaryDirectory directory;
  CommandLine options;
  options.config_path = directory / "config.json";
  write_file(options.config_path,
             R"({"dstune": {"model": "gpt2", "deepspeed_version": "0.18.2"}})");

  const TuningConfig config = read_tuning_config(options);

  EXPECT_EQ(config.deepspeed.step().version, (DeepSpeedVersion{0, 18, 2}));
}

TuningConfig config_of(const char* text) {
  const TemporaryDirectory directory;
  CommandLine options;
  options.config_path = directory / "config.json";
  write_file(options.config_path, text);
  return read_tuning_config(options);
}

TEST(ZeroInit, IsInEveryExperimentUnlessItIsTheDefault) {
  const auto says_it = [](const char* value) {
    return config_of(concat(R"({"dstune": {"model": "gpt2", "deepspeed_version": "0.18.2",
                                           "zero_init": )",
                            value, "}}")
                         .c_str())
        .deepspeed.json()
        .at("dstune")
        .as_object()
        .contains("zero_init");
  };
  EXPECT_TRUE(says_it("false"));
  EXPECT_FALSE(says_it("true"));
  EXPECT_EQ(faults_of([] { config_of(R"({"dstune": {"model": "gpt2", "zero_init": 3}})"); }).size(),
            1U);
}

TEST(ZeroInit, IsNamedWhereItDecidesAndTheFileSaysNothing) {
  const auto notes = [](const char* stage, const char* dstune) {
    return config_of(concat(R"({"zero_optimization": {"stage": )", stage,
                            R"(}, "dstune": {"model": "gpt2", )", dstune, "}}")
                         .c_str())
        .notes.size();
  };
  EXPECT_EQ(notes("3", R"("deepspeed_version": "0.19.3")"), 1U);
  EXPECT_EQ(notes("\"all\"", R"("deepspeed_version": "0.19.3")"), 1U);
  EXPECT_EQ(notes("3", R"("deepspeed_version": "0.19.3", "zero_init": true)"), 0U);
  EXPECT_EQ(notes("3", R"("deepspeed_version": "0.19.4")"), 0U);
  EXPECT_EQ(notes("2", R"("deepspeed_version": "0.19.3")"), 0U);
  EXPECT_EQ(notes(R"(3, "memory_efficient_linear": false)", R"("deepspeed_version": "0.19.3")"),
            0U);
}

TEST(ZeroInit, IsNamedWhereAdaptersWouldHaveAnotherType) {
  const auto notes = [](const char* root, const char* dstune) {
    return config_of(
               concat("{", root, R"("dstune": {"model": "gpt2", "lora": {"r": 4})", dstune, "}}")
                   .c_str())
        .notes.size();
  };
  const auto* const stage_3 = R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 3}, )";

  EXPECT_EQ(notes(stage_3, ""), 1U);
  EXPECT_EQ(notes(stage_3, R"(, "zero_init": false)"), 0U);
  EXPECT_EQ(notes(R"("zero_optimization": {"stage": 3}, )", ""), 0U);
  const auto* const searched = R"("zero_optimization": {"stage": 3}, )";
  EXPECT_EQ(notes(searched, R"(, "precision": ["fp32", "bf16"])"), 1U);
  EXPECT_EQ(notes(searched, R"(, "precision": "fp32")"), 0U);
  EXPECT_EQ(notes(R"("bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, )", ""), 0U);
}

TEST(TuningConfigOfARelease, EndsAtATextThatIsNone) {
  const TemporaryDirectory directory;
  CommandLine options;
  options.config_path = directory / "config.json";
  write_file(options.config_path, R"({"dstune": {"model": "gpt2", "deepspeed_version": 18}})");

  EXPECT_EQ(faults_of([&] { read_tuning_config(options); }).size(), 1U);
}

}  // namespace
}  // namespace dstune::read_deepspeed_version_test
