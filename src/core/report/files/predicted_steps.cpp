#include "core/report/files/predicted_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/report/files/csv.hpp"
#include "core/report/tables/axes.hpp"

namespace dstune {
namespace {

std::vector<ResultAxis> axes_of(const std::vector<PredictedStep>& steps) {
  std::vector<const Experiment*> experiments;
  experiments.reserve(steps.size());
  for (const PredictedStep& step : steps) experiments.push_back(&step.experiment);
  return varying_axes(experiments);
}

std::string line_of(const std::vector<std::string>& cells) {
  std::vector<std::string> fields;
  fields.reserve(cells.size());
  for (const std::string& cell : cells) fields.push_back(csv_field(cell));
  return join(fields, ",") + "\r\n";
}

/// What a setting's worst value loses.
struct Loss {
  std::string what;  ///< "zero 3"
  std::string title;
  double share = 0;
};

Loss worst_of(const ResultAxis& axis, const std::vector<PredictedStep>& steps) {
  std::map<std::string, double> fastest;  // by value: the log-speed
  for (const PredictedStep& step : steps) {
    std::string text = axis_value(axis, step.experiment);
    if (text.empty()) continue;
    const auto [value, is_new] = fastest.try_emplace(std::move(text), step.log_speed);
    if (!is_new) value->second = std::max(value->second, step.log_speed);
  }
  const auto worst =
      std::ranges::min_element(fastest, {}, [](const auto& each) { return each.second; });
  const auto best =
      std::ranges::max_element(fastest, {}, [](const auto& each) { return each.second; });
  return {concat(axis.title, " ", worst->first), axis.title,
          -std::expm1(worst->second - best->second)};
}

}  // namespace

std::string predictions_csv(std::vector<PredictedStep> steps) {
  std::ranges::stable_sort(steps, std::greater<>(), &PredictedStep::log_speed);
  const auto axes = axes_of(steps);
  std::vector<std::string> titles{"name"};
  for (const ResultAxis& axis : axes) titles.push_back(axis.title);
  for (const char* title :
       {"predicted_step_time_s", "low_95_s", "high_95_s", "measured_step_time_s"}) {
    titles.emplace_back(title);
  }
  std::string text = line_of(titles);
  for (const PredictedStep& step : steps) {
    std::vector<std::string> cells{step.experiment.name};
    for (std::string& value : axis_values(axes, step.experiment)) cells.push_back(std::move(value));
    for (const Seconds time : {step.step_time, step.low, step.high}) {
      cells.push_back(to_json_text(time, 0));
    }
    cells.push_back(step.measured ? to_json_text(*step.measured, 0) : "");
    text += line_of(cells);
  }
  return text;
}

std::string settings_that_matter(const std::vector<PredictedStep>& steps) {
  constexpr double kLittle = 0.01;
  if (steps.empty()) return "";
  std::vector<Loss> losses;
  for (const ResultAxis& axis : axes_of(steps)) losses.push_back(worst_of(axis, steps));
  if (losses.empty()) return "";
  std::ranges::stable_sort(losses, std::greater<>(), &Loss::share);
  std::vector<std::string> large;
  std::vector<std::string> small;
  for (const Loss& loss : losses) {
    if (loss.share < kLittle) {
      small.push_back(loss.title);
    } else {
      large.push_back(
          concat(loss.what, large.empty() ? " loses " : " ", fixed(loss.share * 100, 0), " %"));
    }
  }
  return concat(
      "according to the final predictions, with the worst value and the best of all others: ",
      join(large, ", "), large.empty() || small.empty() ? "" : "; ",
      small.empty() ? "" : concat("less than 1 %: ", join(small, ", ")));
}

}  // namespace dstune
