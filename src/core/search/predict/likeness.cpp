#include "core/search/predict/likeness.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

constexpr double kDoublings = 4;

/// The value of a knob, if it is a number.
std::optional<double> number_of(const Knob& knob, const StepConfig& config) {
  std::optional<double> number;
  with_member(
      knob,
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value> && !std::is_same_v<Value, bool>) {
          number = static_cast<double>(value);
        }
      },
      config);
  return number;
}

double likeness(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return 0;
  return std::exp(-std::abs(std::log2(std::max(*a, 1.0)) - std::log2(std::max(*b, 1.0))) /
                  kDoublings);
}

}  // namespace

Likeness::Likeness(const std::vector<Configuration>& configurations)
    : count_(configurations.size()) {
  for (const Knob& knob : kKnobs) {
    Setting setting;
    std::vector<std::optional<double>> numbers{std::nullopt};  // place 0: the step does not read it
    std::vector<const StepConfig*> first{nullptr};             // with each value
    for (const Configuration& each : configurations) {
      const StepConfig& config = *each.step;
      std::size_t place = 0;
      if (changes_step(knob, config)) {
        place = 1;
        while (place < first.size() && !is_same(knob, *first[place], config)) ++place;
        if (place == first.size()) {
          first.push_back(&config);
          numbers.push_back(number_of(knob, config));
        }
      }
      setting.values.push_back(place);
    }
    add(std::move(setting), numbers);
  }
  Setting lengths;
  std::vector<std::optional<double>> numbers;
  Setting limits;
  for (const Configuration& each : configurations) {
    const auto length = static_cast<double>(each.sequence_length);
    const auto known = std::ranges::find(numbers, length);
    lengths.values.push_back(static_cast<std::size_t>(known - numbers.begin()));
    if (known == numbers.end()) numbers.emplace_back(length);
    limits.values.push_back(each.is_near_limit ? 1 : 0);
  }
  add(std::move(lengths), numbers);
  add(std::move(limits), {std::nullopt, std::nullopt});
}

void Likeness::Setting::compare(const std::vector<std::optional<double>>& numbers) {
  alike.assign(numbers.size(), std::vector<double>(numbers.size(), 1));
  for (std::size_t a = 0; a < numbers.size(); ++a) {
    for (std::size_t b = 0; b < numbers.size(); ++b) {
      if (a != b) alike[a][b] = likeness(numbers[a], numbers[b]);
    }
  }
}

void Likeness::add(Setting setting, const std::vector<std::optional<double>>& numbers) {
  // Values are numbered anew in the order of the list, so that equal divisions look alike.
  std::vector<std::size_t> order(numbers.size(), numbers.size());
  std::vector<std::optional<double>> ordered;
  for (std::size_t& value : setting.values) {
    if (order[value] == numbers.size()) {
      order[value] = ordered.size();
      ordered.push_back(numbers[value]);
    }
    value = order[value];
  }
  const bool is_known = std::ranges::any_of(
      settings_, [&](const Setting& each) { return each.values == setting.values; });
  if (ordered.size() < 2 || is_known) return;
  setting.compare(ordered);
  settings_.push_back(std::move(setting));
}

double Likeness::in_setting(std::size_t setting, std::size_t a, std::size_t b) const {
  const Setting& each = settings_[setting];
  return each.alike[each.values[a]][each.values[b]];
}

}  // namespace dstune
