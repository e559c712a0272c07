#include "core/input/coercions.hpp"

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/config/deepspeed/deepspeed_keys.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::coercions_test {
namespace {

// The rule of "/fp16/enabled", and the section it stands in.
struct Place {
  const Section* section = nullptr;
  const KeyRule* rule = nullptr;
};

Place find_place(const std::string& pointer) {
  Place place{&deepspeed_section(), nullptr};
  for (const std::string& step : split(std::string_view(pointer).substr(1), '/')) {
    if (place.rule != nullptr) place.section = place.rule->section;
    place.rule = nullptr;
    if (place.section == nullptr) return {};
    for (const KeyRule& rule : place.section->rules) {
      if (rule.key == step) place.rule = &rule;
    }
    if (place.rule == nullptr) return {};
  }
  return place;
}

// What this program makes of the value, in the words of the file: what it becomes, or "refused",
// "dropped".
json::value verdict(const Place& place, const json::value& value) {
  Problems problems("config.json");
  const auto checked = check_section({{place.rule->key, value}}, *place.section, "", problems);
  if (!problems.empty()) return "refused";
  const auto* const found = checked.if_contains(place.rule->key);
  return found == nullptr ? json::value("dropped") : json::array{*found};
}

bool is_same(const json::value& ours, const json::value& real) {
  if (ours == real) return true;
  return ours.is_number() && real.is_number() &&
         ours.to_number<double>() == real.to_number<double>();
}

bool agrees(const json::value& ours, const json::value& given, const json::value& real) {
  if (real == "refused" || real == "dropped") return ours == real;
  if (!ours.is_array()) return false;
  const json::value& became = ours.get_array().front();
  // A list may be written for the single element that pydantic takes for one.
  if (real == "same") return is_same(became, given) || became == json::value(json::array{given});
  return is_same(became, real.as_array().front());
}

// Where this program is stricter than DeepSpeed's own check, because the step would fail or mean
// nothing, or where the JSON of a file can hold no value that is accepted.
bool is_stricter_on_purpose(std::string_view key, const json::value& real) {
  if (real == "refused") return false;
  for (const std::string_view bounded :
       {"/zero_optimization/allgather_bucket_size", "/zero_optimization/legacy_stage1",
        "/zero_optimization/stage3_module_granularity_threshold", "/fp16/initial_scale_power",
        "/fp16/loss_scale_window", "/fp16/hysteresis", "/fp16/min_loss_scale"}) {
    if (key == bounded) return true;
  }
  return false;
}

bool is_checked_elsewhere(std::string_view key, const KeyRule& rule) {
  return rule.kind == ValueKind::any || key == "/zero_optimization/compute_grad_norm";
}

class Coercions : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(test::test_data("deepspeed_coercions.json"));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    content_ = json::parse(text).as_object();
  }

  json::object content_;
};

TEST_F(Coercions, AreThoseOfDeepSpeed) {
  const auto& values = content_.at("values").as_array();
  int compared = 0;
  for (const json::value& group : content_.at("fields").as_array()) {
    const auto& outcomes = group.as_object().at("outcomes").as_array();
    for (const json::value& name : group.as_object().at("keys").as_array()) {
      const auto key = json::value_to<std::string>(name);
      const Place place = find_place(key);
      ASSERT_NE(place.rule, nullptr) << key;
      if (is_checked_elsewhere(key, *place.rule)) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const json::value ours = verdict(place, values[i]);
        ++compared;
        if (ours == "refused" && is_stricter_on_purpose(key, outcomes[i])) continue;
        EXPECT_TRUE(agrees(ours, values[i], outcomes[i]))
            << key << ": " << to_json_text(values[i], 0) << " is " << to_json_text(ours, 0)
            << " here, " << to_json_text(outcomes[i], 0) << " in DeepSpeed";
      }
    }
  }
  EXPECT_GT(compared, 5000);
}

TEST_F(Coercions, KnowEveryKindOfValue) {
  EXPECT_EQ(content_.at("values").as_array().size(),
            content_.at("fields").as_array()[0].as_object().at("outcomes").as_array().size());
  EXPECT_EQ(coerced("yes", rules::boolean("")), true);
  EXPECT_EQ(coerced("maybe", rules::boolean("")), "maybe");
  EXPECT_EQ(coerced(" +1_000 ", rules::integer("")), 1000);
  EXPECT_EQ(coerced("1__0", rules::integer("")), "1__0");
  EXPECT_EQ(coerced("5e8", rules::integer("")), "5e8");
  EXPECT_EQ(coerced("5e8", rules::number("")), 5e8);
  EXPECT_EQ(coerced(true, rules::integer("").but_no_boolean()), true);
}

}  // namespace
}  // namespace dstune::coercions_test
