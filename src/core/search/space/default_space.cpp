#include "core/search/space/default_space.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

std::int64_t numel_within(const ModelParameters& parameters, std::size_t module,
                          bool trained_alone) {
  std::int64_t sum = 0;
  for (const std::size_t tensor : parameters.tensors_within(module)) {
    const ParameterSpec& one = parameters.tensors[tensor];
    if (one.trainable || !trained_alone) sum += one.numel();
  }
  return sum;
}

// One layer, or what of it is trained: the largest module of which there are as many as layers.
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
  if (!is_switch) {  // ascending, each once
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  Axis axis{pointer_of(knob), {}, {}};
  for (const std::int64_t value : values) {
    axis.values.push_back(is_switch ? json::value(value != 0) : json::value(value));
  }
  return {{std::move(axis)}};
}

}  // namespace

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

}  // namespace dstune
