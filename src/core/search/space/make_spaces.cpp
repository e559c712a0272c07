#include <algorithm>
#include <utility>

#include "core/search/space/deepspeeds_space.hpp"
#include "core/search/space/default_space.hpp"
#include "core/search/space/space.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

constexpr std::string_view kZero = "zero_optimization";

bool has_axis(const std::vector<AxisGroup>& groups, const std::string& pointer) {
  return std::any_of(groups.begin(), groups.end(), [&](const AxisGroup& group) {
    return std::any_of(group.tied.begin(), group.tied.end(),
                       [&](const Axis& axis) { return axis.pointer == pointer; });
  });
}

/// Makes the spaces of one stage.
class SpaceMaker {
 public:
  SpaceMaker(const TuningConfig& config, int group_size, int stage,
             const std::vector<Point>& points)
      : config_(config), users_axes_(config.space.axes_of(stage)) {
    users_.stage = stage;
    users_.group_size = group_size;
    users_.points = points;
    users_.names_accumulation = config.accumulation_is_given;
    const Point first{stage, 1, 1};
    for (auto& member : make_candidate(config, group_size, first).ds_config) {
      const std::string_view key(member.key());
      const bool is_size = key.starts_with("train_") || key == "gradient_accumulation_steps";
      if (!is_size) users_.fixed.insert(member);
    }
  }

  Space users() const {
    SpaceParts parts = users_;
    parts.axes = users_axes_;
    return Space(std::move(parts));
  }

  Space deepspeeds() const {
    SpaceParts parts = users_;
    parts.origin = SpaceOrigin::deepspeeds;
    const json::object pattern = deepspeeds_template(parts.stage);
    parts.name_order[kZero] = pattern;
    json::object zero = pattern;
    for (const auto& member : parts.fixed[kZero].as_object()) {
      const std::string pointer = "/zero_optimization/" + std::string(member.key());
      if (!zero.contains(member.key()) || is_users(pointer)) zero[member.key()] = member.value();
    }
    parts.fixed[kZero] = std::move(zero);
    parts.axes = with_users(deepspeeds_axes(parts.stage));
    return Space(std::move(parts));
  }

  Space ours() const {
    SpaceParts parts = users_;
    parts.origin = SpaceOrigin::ours;
    const ModelSpec& model = config_.settings.model;
    parts.axes = with_users(
        default_axes(model, make_model_parameters(model), parts.stage, parts.group_size));
    return Space(std::move(parts));
  }

 private:
  // What the user has chosen is not ours to search; "auto" leaves the choice to us.
  bool is_users(const std::string& pointer) const {
    if (has_axis(users_axes_, pointer)) return true;
    if (config_.space.open.contains(pointer)) return false;
    json::value file = config_.deepspeed;
    return find_at(file, keys_of(pointer)) != nullptr;
  }

  std::vector<AxisGroup> with_users(std::vector<AxisGroup> axes) const {
    std::erase_if(axes,
                  [&](const AxisGroup& group) { return is_users(group.tied.front().pointer); });
    axes.insert(axes.end(), users_axes_.begin(), users_axes_.end());
    return axes;
  }

  const TuningConfig& config_;
  std::vector<AxisGroup> users_axes_;
  SpaceParts users_;
};

}  // namespace

std::vector<Space> make_spaces(const TuningConfig& config, int group_size, int stage,
                               const std::vector<Point>& points) {
  const SpaceMaker maker(config, group_size, stage, points);
  std::vector<Space> spaces;
  spaces.push_back(maker.users());
  if (config.space.with_deepspeeds && stage > 0) spaces.push_back(maker.deepspeeds());
  if (config.space.with_default && stage > 0) spaces.push_back(maker.ours());
  return spaces;
}

}  // namespace dstune
