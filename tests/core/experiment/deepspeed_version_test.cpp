#include "core/experiment/deepspeed_version.hpp"

#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/experiment/knobs.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::deepspeed_version_test {
namespace {

using Version = DeepSpeedVersion;

TEST(ParseDeepSpeedVersion, TakesWhatPipShows) {
  EXPECT_EQ(parse_deepspeed_version("0.18.2"), (Version{0, 18, 2}));
  EXPECT_EQ(parse_deepspeed_version("0.19.8+cu128"), (Version{0, 19, 8}));
  EXPECT_EQ(parse_deepspeed_version("0.19.9rc1"), (Version{0, 19, 9}));
  EXPECT_EQ(parse_deepspeed_version("1.0.0.dev3"), (Version{1, 0, 0}));
}

TEST(ParseDeepSpeedVersion, RefusesWhatIsNone) {
  for (const char* text : {"", "0.18", "0.18.", "v0.18.2", "0.18.x", "latest", "0.-1.2", "0.18.2 ",
                           "0.18.99999999999"}) {
    EXPECT_EQ(parse_deepspeed_version(text), std::nullopt) << text;
  }
}

TEST(DeepSpeedVersion, IsReadFromAnExperimentAndElseTheNewest) {
  const json::object old = {{"dstune", json::object{{"deepspeed_version", "0.16.9"}}}};

  EXPECT_EQ(deepspeed_version_of(old), (Version{0, 16, 9}));
  EXPECT_EQ(deepspeed_version_of({}), kNewestDeepSpeed);
  EXPECT_EQ(to_text(kNewestDeepSpeed), "0.19.8");
  EXPECT_THROW(deepspeed_version_of({{"dstune", json::object{{"deepspeed_version", "old"}}}}),
               std::invalid_argument);
}

/// What DeepSpeed's releases say of themselves (scripts/make_deepspeed_versions.py).
class DeepSpeedsOwn : public testing::Test {
 protected:
  DeepSpeedsOwn() {
    std::ifstream file(test::test_data("deepspeed_versions.json"));
    std::stringstream text;
    text << file.rdbuf();
    fixture_ = parse_json(text.str()).as_object();
  }

  std::vector<Version> versions() const {
    std::vector<Version> found;
    for (const auto& text : fixture_.at("versions").as_array()) {
      found.push_back(*parse_deepspeed_version(std::string_view(text.as_string())));
    }
    return found;
  }

  const json::object& histories() const { return fixture_.at("defaults").as_object(); }

  /// The release's own default; "absent" if it does not read the key.
  json::value default_in(std::string_view pointer, const Version& version) const {
    json::value found = "absent";
    for (const auto& member : histories().at(pointer).as_object()) {
      if (*parse_deepspeed_version(std::string_view(member.key())) <= version)
        found = member.value();
    }
    return found;
  }

 private:
  json::object fixture_;
};

TEST_F(DeepSpeedsOwn, DefaultsAreTheTables) {
  for (const Knob& knob : kKnobs) {
    if (knob.defaults.empty()) continue;
    const std::string pointer = pointer_of(knob);
    for (const Version& version : versions()) {
      const json::value theirs = default_in(pointer, version);
      if (theirs == "absent") continue;
      EXPECT_EQ(default_of(knob, version), theirs) << pointer << ' ' << to_text(version);
    }
  }
}

std::optional<double> number_of(const Knob& knob, const StepConfig& config) {
  std::optional<double> number;
  with_member(
      knob,
      [&](const auto& member) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(member)>>) {
          number = static_cast<double>(member);
        }
      },
      config);
  return number;
}

TEST_F(DeepSpeedsOwn, DefaultsAreThoseOfAStep) {
  int compared = 0;
  for (const Knob& knob : kKnobs) {
    const std::string pointer = pointer_of(knob);
    if (!histories().contains(pointer) || pointer.ends_with("mics_shard_size"))
      continue;  // -1: off
    for (const Version& version : versions()) {
      const json::value theirs = default_in(pointer, version);
      const auto ours = number_of(
          knob, make_step_config({{"dstune", {{"deepspeed_version", to_text(version)}}}}));
      if (!ours || theirs.is_null() || theirs.is_string()) continue;
      const double number = theirs.is_bool() ? theirs.get_bool() : theirs.to_number<double>();
      EXPECT_EQ(*ours, number) << pointer << ' ' << to_text(version);
      ++compared;
    }
  }
  EXPECT_GT(compared, 25 * static_cast<int>(versions().size()));
}

// No step hangs on these.
const std::set<std::string_view> kElsewhere = {"/seq_parallel_communication_data_type"};

TEST_F(DeepSpeedsOwn, DefaultsThatChangedAreAllInTheTable) {
  std::set<std::string, std::less<>> known(kElsewhere.begin(), kElsewhere.end());
  for (const Knob& knob : kKnobs) {
    if (!knob.defaults.empty()) known.insert(pointer_of(knob));
  }
  for (const auto& history : histories()) {
    std::set<std::string> defaults;
    for (const auto& since : history.value().as_object()) {
      if (since.value() != "absent") defaults.insert(serialize(since.value()));
    }
    EXPECT_TRUE(defaults.size() < 2 || known.contains(std::string_view(history.key())))
        << history.key();
  }
}

TEST_F(DeepSpeedsOwn, KeysOfZeroAreKnownFromTheTablesReleaseOn) {
  std::set<std::string_view> added;
  for (const KeySince& row : added_keys()) {
    added.insert(row.pointer);
    for (const Version& version : versions()) {
      if (!histories().contains(row.pointer)) continue;  // a section, whose keys are listed
      const bool is_known = default_in(row.pointer, version) != "absent";
      const bool is_removed =
          row.pointer == "/zero_optimization/zeropp_loco_param" && version >= Version{0, 19, 8};
      EXPECT_EQ(is_known, version >= row.since && !is_removed)
          << row.pointer << ' ' << to_text(version);
    }
  }
  for (const auto& history : histories()) {
    const std::string_view pointer(history.key());
    if (!pointer.starts_with("/zero_optimization/")) continue;
    const auto parent = pointer.substr(0, pointer.rfind('/'));
    const bool is_old = default_in(pointer, kOldestDeepSpeed) != "absent";
    EXPECT_TRUE(is_old || added.contains(pointer) || added.contains(parent)) << pointer;
  }
}

TEST(RemovedKeys, HaveARelease) {
  for (const KeySince& row : removed_keys()) {
    EXPECT_LE(row.since, kNewestDeepSpeed) << row.pointer;
    EXPECT_GT(row.since, kOldestDeepSpeed) << row.pointer;
  }
}

TEST(BehaviourOf, BeginsAndEndsWithReleases) {
  EXPECT_FALSE(behaviour_of({0, 17, 0}).can_check_bf16);
  EXPECT_TRUE(behaviour_of({0, 17, 1}).can_check_bf16);
  EXPECT_FALSE(behaviour_of({0, 17, 4}).waits_for_each_bucket);
  EXPECT_TRUE(behaviour_of({0, 17, 5}).waits_for_each_bucket);
  EXPECT_TRUE(behaviour_of({0, 18, 4}).waits_for_each_bucket);
  EXPECT_FALSE(behaviour_of({0, 18, 5}).waits_for_each_bucket);
  EXPECT_FALSE(behaviour_of({0, 18, 4}).counts_parameters_in_hooks);
  EXPECT_TRUE(behaviour_of({0, 18, 5}).counts_parameters_in_hooks);
  EXPECT_TRUE(behaviour_of({0, 18, 6}).counts_parameters_in_hooks);
  EXPECT_FALSE(behaviour_of({0, 18, 7}).counts_parameters_in_hooks);
  EXPECT_FALSE(behaviour_of({0, 17, 6}).has_default_leaf_classes);
  EXPECT_TRUE(behaviour_of({0, 18, 0}).has_default_leaf_classes);
  EXPECT_FALSE(behaviour_of({0, 19, 2}).drops_recomputed);
  EXPECT_TRUE(behaviour_of({0, 19, 3}).drops_recomputed);
}

}  // namespace
}  // namespace dstune::deepspeed_version_test
