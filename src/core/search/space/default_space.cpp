#include "core/search/space/default_space.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

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

AxisGroup axis(const char* key, std::vector<json::value> values) {
  return {{{std::string("/zero_optimization/") + key, std::move(values), {}}}};
}

// Ascending, each once.
AxisGroup sizes(const char* key, std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return axis(key, {values.begin(), values.end()});
}

}  // namespace

std::vector<AxisGroup> default_axes(const ModelSpec& spec, const ModelParameters& parameters,
                                    int stage, int ranks) {
  if (stage == 0) return {};
  const std::int64_t all = parameters.total();
  const std::int64_t layer = layer_numel(spec, parameters, false);
  // What is reduced and stepped is what is trained.
  const std::int64_t trained = parameters.trainable_total();
  const std::int64_t trained_layer = layer_numel(spec, parameters, true);
  std::vector<AxisGroup> axes = {
      axis("overlap_comm", {true, false}), axis("contiguous_gradients", {true, false}),
      axis("reduce_scatter", {true, false}),
      sizes("reduce_bucket_size", {trained_layer, std::min(4 * trained_layer, trained), trained})};
  if (stage < 3) {
    axes.push_back(axis("use_multi_rank_bucket_allreduce", {true, false}));
    axes.push_back(axis("round_robin_gradients", {false, true}));
    return axes;
  }
  // Beyond these limits nothing changes: what is live and what is reused is at most the model, once
  // forwards and once backwards.
  const std::int64_t no_limit = 8 * all;
  axes.push_back(sizes("stage3_prefetch_bucket_size", {0, layer, std::min(4 * layer, all)}));
  axes.push_back(sizes("stage3_param_persistence_threshold", {0, 10 * spec.hidden_size, all}));
  axes.push_back(sizes("stage3_max_live_parameters", {2 * layer, no_limit}));
  axes.push_back(sizes("stage3_max_reuse_distance", {0, no_limit}));
  axes.push_back(
      sizes("sub_group_size", {std::max<std::int64_t>(1, trained_layer / ranks), no_limit}));
  return axes;
}

}  // namespace dstune
