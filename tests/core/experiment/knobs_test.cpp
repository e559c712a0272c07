#include "core/experiment/knobs.hpp"

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::knobs_test {
namespace {

StepConfig usual_in(int stage) {
  return make_step_config({{"zero_optimization", {{"stage", stage}}}});
}

TEST(Knobs, AreEachThereOnce) {
  std::set<std::string> seen;
  for (const Knob& knob : kKnobs) EXPECT_TRUE(seen.insert(pointer_of(knob)).second);
}

TEST(Knobs, OfStage3AreReadByBothTheirNames) {
  for (const Knob& knob : kKnobs) {
    if (knob.rule.alias.empty() || std::holds_alternative<std::monostate>(knob.member)) continue;
    const json::value given =
        knob.rule.kind == ValueKind::boolean ? json::value(true) : json::value(7);
    const auto read = [&](std::string_view key) {
      return make_step_config({{"zero_optimization", {{"stage", 3}, {key, given}}}});
    };

    EXPECT_FALSE(is_same(knob, read(knob.rule.key), usual_in(3))) << knob.rule.key;
    EXPECT_TRUE(is_same(knob, read(knob.rule.key), read(knob.rule.alias))) << knob.rule.key;
  }
}

TEST(CopyKnob, CopiesThatMemberAlone) {
  StepConfig given = usual_in(3);
  given.loss_scale.window = 7;
  given.overlap_comm = false;
  StepConfig config = usual_in(3);

  copy_knob(knob_of("/fp16", "loss_scale_window"), given, config);

  EXPECT_EQ(config.loss_scale.window, 7);
  EXPECT_TRUE(config.overlap_comm);
  EXPECT_FALSE(is_same(knob_of("/zero_optimization", "overlap_comm"), given, config));
}

TEST(DoesNothing, SaysNothingOfKeysThatAreNoKnobs) {
  EXPECT_FALSE(does_nothing("/zero_optimization/offload_optimizer", 0));
  EXPECT_FALSE(does_nothing("/zero_optimization/offload_param/device", 3));
  EXPECT_FALSE(does_nothing("/gradient_clipping", 0));
  EXPECT_FALSE(does_nothing("/bf16/enabled", 0));
}

std::string stages_text(const StageSet& stages) {
  std::vector<std::string> numbers;
  for (const int stage : {0, 1, 2, 3}) {
    if (stages.contains(stage)) numbers.push_back(concat(stage));
  }
  return numbers.empty() ? "none" : join(numbers, ", ");
}

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int value) { return concat(value); }
std::string text_of(Bytes value) { return concat(value); }
std::string text_of(std::int64_t value) { return concat(value); }
std::string text_of(double value) { return concat(value); }
template <class Value>
std::string text_of(const Value& /*value*/) {
  return "";
}

std::string default_text(const Knob& knob) {
  if (knob.rule.key == "stage") return "0";
  if (knob.rule.kind == ValueKind::text) return "";
  const StepConfig stage_0 = usual_in(0);
  const StepConfig stage_3 = usual_in(3);
  std::string of_0;
  std::string of_3;
  with_member(
      knob,
      [&](const auto& below, const auto& in_3) {
        of_0 = text_of(below);
        of_3 = text_of(in_3);
      },
      stage_0, stage_3);
  return of_0 == of_3 ? of_0 : concat(of_0, ", in stage 3 ", of_3);
}

/// What the reader of the file says to a value that is none.
std::string accepted_text(const Knob& knob) {
  Problems problems("");
  check_value(json::array{json::array{}}, knob.rule, "", problems);
  try {
    problems.throw_if_any();
  } catch (const ConfigError& error) {
    const std::string what(error.problems().front().what);
    return what.substr(what.find("accepted: ") + std::string_view("accepted: ").size());
  }
  return "";
}

/// A line of the table in docs/configuration.md.
std::string documented(const Knob& knob) {
  std::string key = pointer_of(knob).substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return concat("| `", key, "` | ", accepted_text(knob), " | ", default_text(knob), " | ",
                stages_text(knob.stages), " |");
}

TEST(Knobs, AreDocumented) {
  std::ifstream file(test::test_data("../../docs/configuration.md"));
  std::stringstream text;
  text << file.rdbuf();
  for (const Knob& knob : kKnobs) {
    EXPECT_NE(text.str().find(documented(knob) + '\n'), std::string::npos) << documented(knob);
  }
}

TEST(Knobs, GetTheDefaultsOfTheirRelease) {
  for (const char* const release : {"0.16.9", "0.19.8"}) {
    const json::object version{{"deepspeed_version", release}};
    StepConfig config = make_step_config(
        json::object{{"dstune", version},
                     {"gradient_clipping", 5},
                     {"bf16", {{"enabled", true}, {"check_grad_overflow", false}}},
                     {"zero_optimization",
                      {{"stage", 3}, {"overlap_comm", false}, {"contiguous_gradients", false}}}});
    const StepConfig plain = make_step_config(json::object{{"dstune", version}});

    for (const Knob& knob : kKnobs) set_to_default(knob, config);

    for (const Knob& knob : kKnobs) EXPECT_TRUE(is_same(knob, config, plain)) << pointer_of(knob);
  }
}

}  // namespace
}  // namespace dstune::knobs_test
