#include "core/search/feasibility/modelled.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/input/problems.hpp"

namespace dstune {

namespace {

constexpr std::string_view kNotModelled = "not modelled: ";

/// A reason why stages cannot be measured, and these stages.
struct Obstacle {
  std::string reason;
  std::vector<std::string> stages;
};

void add(std::vector<Obstacle>& obstacles, const std::string& reason, int stage) {
  auto found = std::find_if(obstacles.begin(), obstacles.end(),
                            [&](const Obstacle& obstacle) { return obstacle.reason == reason; });
  if (found == obstacles.end()) found = obstacles.insert(found, {reason, {}});
  found->stages.push_back(std::to_string(stage));
}

// The reasons in a text: "not modelled: a.b, c with d" has two; any other text is one.
std::vector<std::string> reasons_of(std::string_view text) {
  if (text.substr(0, kNotModelled.size()) != kNotModelled) return {std::string(text)};
  std::vector<std::string> reasons;
  text.remove_prefix(kNotModelled.size());
  for (auto end = text.find(", "); end != std::string_view::npos; end = text.find(", ")) {
    reasons.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 2);
  }
  reasons.emplace_back(text);
  return reasons;
}

std::string pointer_of(std::string_view dotted) {
  std::string pointer;
  for (const auto& key : split(dotted, '.')) pointer = child(pointer, key);
  return pointer;
}

// The key that the user should remove: an optimizer without its type would be another fault.
std::string removable(const std::string& pointer) {
  return pointer == "/optimizer/type" ? "/optimizer" : pointer;
}

std::string in_stages(const Obstacle& obstacle) {
  return concat(obstacle.stages.size() == 1 ? "in stage " : "in stages ",
                join(obstacle.stages, ", "));
}

// A reason is a dotted key, and perhaps its value or what it stands together with: "a.b: false",
// "optimizer.type Muon", "a.b with c".
Problem problem_of(const Obstacle& obstacle, bool has_key) {
  if (!has_key) {
    return {"/zero_optimization",
            concat("cannot run ", in_stages(obstacle), ": ", obstacle.reason)};
  }
  const std::string_view reason = obstacle.reason;
  const auto end = std::min(reason.find_first_of(": "), reason.size());
  const std::string pointer = pointer_of(reason.substr(0, end));
  const auto rest = trim(reason.substr(std::min(end + 1, reason.size())));
  return {pointer, concat(rest.empty() ? "" : concat("(", rest, ") "), "is not modelled ",
                          in_stages(obstacle), "; change it, or tune without it: --without ",
                          removable(pointer))};
}

}  // namespace

void check_modelled(const TuningConfig& config, const std::vector<StagePlan>& stages) {
  std::vector<Obstacle> keys;
  std::vector<Obstacle> others;
  for (const StagePlan& plan : stages) {
    if (plan.unsupported.empty()) return;
    const bool has_key = plan.unsupported.rfind(kNotModelled, 0) == 0;
    for (const auto& reason : reasons_of(plan.unsupported)) {
      add(has_key ? keys : others, reason, plan.stage);
    }
  }
  std::vector<Problem> problems;
  problems.reserve(keys.size() + others.size());
  for (const Obstacle& obstacle : keys) problems.push_back(problem_of(obstacle, true));
  for (const Obstacle& obstacle : others) problems.push_back(problem_of(obstacle, false));
  if (!problems.empty()) throw ConfigError(config.source, std::move(problems));
}

}  // namespace dstune
