#include "core/config/offload_search.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/tuning_config.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::offload_search_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum OffloadLevel;

class OffloadSearchTest : public testing::Test {
 protected:
  TuningConfig read(const std::string& dstune, const std::string& zero = "{}") {
    CommandLine options;
    options.config_path = directory_ / "config.json";
    testing_support::write_file(
        options.config_path,
        concat(R"({"zero_optimization": )", zero, R"(, "dstune": {"model": "gpt2")", dstune, "}}"));
    return read_tuning_config(options);
  }
  std::string fault(const std::string& dstune, const std::string& zero = "{}") {
    return join(testing_support::faults_of([&] { read(dstune, zero); }), "\n");
  }

 private:
  testing_support::TemporaryDirectory directory_;
};

TEST_F(OffloadSearchTest, OffloadsWhereItIsNeededUnlessTheUserSaysOtherwise) {
  EXPECT_EQ(read("").offload.when, OffloadWhen::if_needed);
  EXPECT_FALSE(read("").offload.is_given);
  EXPECT_EQ(read(R"(, "offload": "never")").offload.when, OffloadWhen::never);
  EXPECT_EQ(read(R"(, "offload": "always")").offload.when, OffloadWhen::always);
  EXPECT_TRUE(read(R"(, "offload": "if_needed")").offload.is_given);
}

TEST_F(OffloadSearchTest, TakesAListOfLevelsEachOnce) {
  const auto offload =
      read(R"(, "offload": ["optimizer", "none", "optimizer_and_parameters", "none"])").offload;

  EXPECT_EQ(offload.when, OffloadWhen::levels);
  EXPECT_THAT(offload.levels_of(3), ElementsAre(optimizer, none, optimizer_and_parameters));
  EXPECT_THAT(offload.levels_of(2), ElementsAre(optimizer, none));
  EXPECT_THAT(offload.levels_of(0), IsEmpty());
}

TEST_F(OffloadSearchTest, GoesToADriveWhereItIsNeededAndAFolderIsGiven) {
  EXPECT_THAT(read("").offload.levels_of(3), ElementsAre(optimizer, optimizer_and_parameters));

  const auto if_needed = read(R"(, "nvme_path": "/mnt/nvme")").offload;
  EXPECT_EQ(if_needed.nvme_path, "/mnt/nvme");
  EXPECT_THAT(if_needed.levels_of(3),
              ElementsAre(optimizer, optimizer_and_parameters, optimizer_on_nvme));
  EXPECT_THAT(if_needed.levels_of(2), ElementsAre(optimizer));
  EXPECT_THAT(if_needed.levels_of(0), IsEmpty());

  const auto always = read(R"(, "nvme_path": "/mnt/nvme", "offload": "always")").offload;
  EXPECT_THAT(always.levels_of(3), ElementsAre(optimizer, optimizer_and_parameters));

  const auto listed =
      read(R"(, "nvme_path": "/mnt/nvme", "offload": ["optimizer_on_nvme", "none"])").offload;
  EXPECT_THAT(listed.levels_of(3), ElementsAre(optimizer_on_nvme, none));
  EXPECT_THAT(listed.levels_of(2), ElementsAre(none));
}

TEST_F(OffloadSearchTest, NeedsTheFolderOfTheDriveThatItIsToUse) {
  EXPECT_THAT(fault(R"(, "offload": ["none", "optimizer_on_nvme"])"),
              HasSubstr("/dstune/nvme_path  is missing; the level \"optimizer_on_nvme\""));
  EXPECT_THAT(fault(R"(, "nvme_path": "")"), HasSubstr("/dstune/nvme_path  is \"\""));
  EXPECT_THAT(fault(R"(, "nvme_pth": "/mnt/nvme")"), HasSubstr("did you mean \"nvme_path\"?"));
  EXPECT_THAT(read(R"(, "nvme_path": "/n")", R"({"offload_param": {"device": "cpu"}})").warnings,
              testing::Contains(HasSubstr("dstune.nvme_path is not used")));
  EXPECT_THAT(fault(R"(, "nvme_path": "nvme")"), HasSubstr("/dstune/nvme_path  is \"nvme\""));
}

TEST_F(OffloadSearchTest, WarnsOfADriveThatNoSearchGoesTo) {
  const auto warnings = [&](const char* dstune, const char* zero = R"({"stage": [2, 3]})") {
    return read(concat(R"(, "nvme_path": "/n")", dstune), zero).warnings;
  };
  const auto is_unused = testing::Contains(HasSubstr("dstune.nvme_path is not used: a search"));
  EXPECT_THAT(warnings(""), testing::Not(is_unused));
  EXPECT_THAT(warnings("", R"({"stage": 2})"), is_unused);
  EXPECT_THAT(warnings(R"(, "tuner": "fast")"), is_unused);
  EXPECT_THAT(warnings(R"(, "offload": "always")"), is_unused);
}

TEST_F(OffloadSearchTest, NamesWhatIsWrong) {
  EXPECT_THAT(fault(R"(, "offload": "sometimes")"),
              HasSubstr("/dstune/offload  is \"sometimes\"; accepted: \"never\", \"if_needed\""));
  EXPECT_THAT(fault(R"(, "offload": [])"), HasSubstr("/dstune/offload  is "));
  EXPECT_THAT(fault(R"(, "offload": ["none", "nvme", 1])"),
              testing::AllOf(HasSubstr("/dstune/offload/1  is \"nvme\"; accepted: \"none\""),
                             HasSubstr("/dstune/offload/2  is 1;")));
}

TEST_F(OffloadSearchTest, LeavesAFileAloneThatSaysWhatItOffloads) {
  for (const char* zero :
       {R"({"offload_optimizer": {"device": "cpu"}})", R"({"offload_param": {"device": "none"}})",
        R"({"offload_optimizer": {"device": ["none", "cpu"]}})"}) {
    EXPECT_EQ(read("", zero).offload.when, OffloadWhen::never) << zero;
    EXPECT_EQ(read(R"(, "offload": "never")", zero).offload.when, OffloadWhen::never) << zero;
    EXPECT_THAT(fault(R"(, "offload": "always")", zero),
                HasSubstr("/dstune/offload  is given, but zero_optimization of the file says"))
        << zero;
  }
  EXPECT_EQ(read("", R"({"offload_optimizer": null})").offload.when, OffloadWhen::if_needed);
}

TEST_F(OffloadSearchTest, TakesATunerThatSearchesSpaces) {
  EXPECT_THAT(fault(R"(, "tuner": "fast", "offload": "always")"),
              HasSubstr("/dstune/offload  is given, but the tuner \"fast\" searches no spaces"));
  EXPECT_EQ(fault(R"(, "tuner": "fast", "offload": "never")"), "");
  EXPECT_EQ(fault(R"(, "tuner": "fast")"), "");
  EXPECT_EQ(fault(R"(, "tuner": "random", "offload": "always")"), "");
}

TEST_F(OffloadSearchTest, ALevelIsTheSettingsThatMakeIt) {
  const AxisGroup in_2 = offload_axes(2, {none, optimizer}, {.pins = false});
  const AxisGroup in_3 = offload_axes(3, {optimizer, optimizer_and_parameters}, {});

  ASSERT_EQ(in_2.tied.size(), 2U);
  EXPECT_EQ(in_2.tied[0].pointer, "/zero_optimization/offload_optimizer/device");
  EXPECT_THAT(in_2.tied[0].values, ElementsAre("none", "cpu"));
  EXPECT_THAT(in_2.tied[1].values, ElementsAre(false, false));
  ASSERT_EQ(in_3.tied.size(), 4U);
  EXPECT_THAT(in_3.tied[0].values, ElementsAre("cpu", "cpu"));
  EXPECT_EQ(in_3.tied[2].pointer, "/zero_optimization/offload_param/device");
  EXPECT_THAT(in_3.tied[2].values, ElementsAre("none", "cpu"));
  EXPECT_EQ(in_3.tied[3].pointer, "/zero_optimization/offload_param/pin_memory");
  EXPECT_THAT(in_3.tied[3].values, ElementsAre(true, true));
}

TEST_F(OffloadSearchTest, ALevelWithADriveHasItsBuffersAndTheOthersTheDefaults) {
  const AxisGroup group = offload_axes(3, {optimizer, optimizer_on_nvme}, {true, "/mnt/nvme"});

  ASSERT_EQ(group.tied.size(), 7U);
  EXPECT_THAT(group.tied[0].values, ElementsAre("cpu", "nvme"));
  EXPECT_THAT(group.tied[2].values, ElementsAre("none", "cpu"));
  EXPECT_EQ(group.tied[4].pointer, "/zero_optimization/offload_optimizer/nvme_path");
  EXPECT_THAT(group.tied[4].values, ElementsAre(json::value(nullptr), "/mnt/nvme"));
  EXPECT_EQ(group.tied[5].pointer, "/zero_optimization/offload_optimizer/buffer_count");
  EXPECT_THAT(group.tied[5].values, ElementsAre(4, 4));
  EXPECT_EQ(group.tied[6].pointer, "/zero_optimization/sub_group_size");
  EXPECT_THAT(group.tied[6].values, ElementsAre(1'000'000'000, 100'000'000));

  EXPECT_EQ(offload_axes(3, {optimizer_on_nvme}, {true, "/n", 0}).tied.size(), 6U)
      << "the file says how large sub-groups are";
}

}  // namespace
}  // namespace dstune::offload_search_test
