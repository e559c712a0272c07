#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/experiment/knobs.hpp"
#include "core/search/space/space.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

constexpr std::int64_t kUsualBucket = 500'000'000;

AxisGroup axis(const char* key, std::vector<json::value> values) {
  return {{{std::string("/zero_optimization/") + key, std::move(values), {}}}};
}

AxisGroup buckets(const char* key) { return axis(key, {50'000'000, 500'000'000, 1'000'000'000}); }

// DeepSpeed's own default spaces and templates (docs/deepspeed-step.md, "DeepSpeed's autotuner:
// spaces"). This is what the template of `stage` puts into zero_optimization, in its order, the
// stage first. Numbers are integers.
json::object deepspeeds_template(int stage) {
  if (stage == 0) return {{"stage", 0}};
  if (stage == 1) {
    return {{"stage", 1},
            {"reduce_bucket_size", kUsualBucket},
            {"allgather_bucket_size", kUsualBucket}};
  }
  json::object zero = {{"stage", stage},
                       {"allgather_partitions", true},
                       {"allgather_bucket_size", kUsualBucket},
                       {"overlap_comm", false},
                       {"reduce_scatter", true},
                       {"reduce_bucket_size", kUsualBucket},
                       {"contiguous_gradients", false}};
  if (stage < 3) return zero;
  zero["stage3_max_live_parameters"] = 1'000'000'000;
  zero["stage3_max_reuse_distance"] = 1'000'000'000;
  zero["stage3_prefetch_bucket_size"] = 500'000'000;
  zero["stage3_param_persistence_threshold"] = 1'000'000;
  zero["stage3_gather_16bit_weights_on_model_save"] = false;
  zero["sub_group_size"] = 1'000'000'000'000;
  return zero;
}

// The lists of DEFAULT_TUNING_SPACE_ZERO_{stage}, in their order; none in stage 0.
std::vector<AxisGroup> deepspeeds_axes(int stage) {
  if (stage == 0) return {};
  const AxisGroup reduced = buckets("reduce_bucket_size");
  const AxisGroup gathered = buckets("allgather_bucket_size");
  if (stage == 1) return {reduced, gathered};
  std::vector<AxisGroup> axes = {axis("overlap_comm", {true, false}),
                                 axis("reduce_scatter", {false, true}), reduced};
  if (stage == 3) axes.push_back(axis("allgather_partitions", {true, false}));
  axes.push_back(gathered);
  axes.push_back(axis("contiguous_gradients", {false, true}));
  return axes;
}

std::int64_t numel_within(const ModelParameters& parameters, std::size_t module,
                          bool trained_alone) {
  std::int64_t sum = 0;
  for (const std::size_t tensor : parameters.tensors_within(module)) {
    const ParameterSpec& one = parameters.tensors[tensor];
    if (one.trainable || !trained_alone) sum += one.numel();
  }
  return sum;
}

// The number of elements of one layer, or of its trained part: of the modules of which there are as
// many as layers the largest counts.
std::int64_t layer_numel(const ModelSpec& spec, const ModelParameters& parameters,
                         bool trained_alone) {
  std::map<std::string, std::int64_t> counts;
  for (const ModuleSpec& module : parameters.modules) ++counts[module.class_name];
  std::int64_t largest = 0;
  for (std::size_t module = 0; module < parameters.modules.size(); ++module) {
    if (counts[parameters.modules[module].class_name] != spec.num_layers) continue;
    largest = std::max(largest, numel_within(parameters, module, trained_alone));
  }
  const std::int64_t all = trained_alone ? parameters.trainable_total() : parameters.total();
  return largest > 0 ? largest : std::max<std::int64_t>(1, all / spec.num_layers);
}

AxisGroup axis_of(const Knob& knob, std::vector<std::int64_t> values) {
  const bool is_switch = knob.rule.kind == ValueKind::boolean;
  if (!is_switch) {  // other values are ascending, each once
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  Axis axis{pointer_of(knob), {}, {}};
  for (const std::int64_t value : values) {
    axis.values.push_back(is_switch ? json::value(value != 0) : json::value(value));
  }
  return {{std::move(axis)}};
}

// Our own default space: the knobs that change time or memory in a stage, with values from the
// model's own sizes. Knobs that change the numbers which training computes are left alone. The list
// is empty in stage 0, where ZeRO does nothing.
std::vector<AxisGroup> default_axes(const ModelSpec& spec, const ModelParameters& parameters,
                                    int stage, int ranks) {
  const ModelSizes sizes{.hidden_size = spec.hidden_size,
                         .all = parameters.total(),
                         .layer = layer_numel(spec, parameters, false),
                         .trained = parameters.trainable_total(),
                         .trained_layer = layer_numel(spec, parameters, true),
                         .ranks = ranks};
  std::vector<AxisGroup> axes;
  for (const Knob& knob : kKnobs) {
    if (knob.search_values == nullptr || !knob.stages.contains(stage)) continue;
    axes.push_back(axis_of(knob, knob.search_values(sizes)));
  }
  return axes;
}

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
    const Candidate candidate = make_candidate(config, group_size, first);
    for (const auto& member : candidate.ds_config.json()) {
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
  // Our space leaves out the settings that the user has chosen; "auto" leaves the choice to us.
  bool is_users(const std::string& pointer) const {
    if (has_axis(users_axes_, pointer)) return true;
    if (config_.space.open.contains(pointer)) return false;
    json::value file = config_.deepspeed.json();
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
