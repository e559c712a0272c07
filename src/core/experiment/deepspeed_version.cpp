#include "core/experiment/deepspeed_version.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include "core/base/text.hpp"
#include "core/experiment/checked_fields.hpp"

namespace dstune {
namespace {

constexpr KeySince kAdded[] = {
    {"/zero_optimization/stage3_module_granularity_threshold", {0, 16, 0}},
    {"/zero_optimization/zeropp_loco_param", {0, 16, 2}},
    {"/zero_optimization/log_trace_cache_warnings", {0, 16, 4}},
    {"/zero_optimization/zenflow", {0, 17, 5}},
    {"/zero_optimization/enable_sanity_checks", {0, 17, 6}},
    {"/zero_optimization/leaf_module", {0, 18, 0}},
    {"/zero_optimization/offload_optimizer/super_offload", {0, 18, 0}},
    {"/zero_optimization/offload_optimizer/cpuadam_cores_perc", {0, 18, 0}},
    {"/zero_optimization/stage3_allgather_sequential", {0, 18, 5}},
    {"/zero_optimization/save_muon_momentum_buffer_in_memory", {0, 18, 9}},
    {"/zero_optimization/compute_grad_norm", {0, 19, 7}},
    {"/zero_optimization/parameter_alignment", {0, 19, 7}},
};

constexpr KeySince kRemoved[] = {
    {"/nebula", {0, 19, 7}},
    {"/compression_training", {0, 19, 7}},
    {"/quantize_training", {0, 19, 7}},
    {"/sparse_attention", {0, 19, 7}},
    {"/zero_optimization/mics_shard_size", {0, 19, 7}},
    {"/zero_optimization/mics_hierarchical_params_gather", {0, 19, 7}},
    {"/zero_optimization/zeropp_loco_param", {0, 19, 8}},
    {"/amp", {0, 19, 8}},
    {"/sparse_gradients", {0, 19, 8}},
    {"/eigenvalue", {0, 19, 8}},
    {"/elasticity", {0, 19, 8}},
    {"/graph_harvesting", {0, 19, 8}},
    {"/curriculum_learning", {0, 19, 8}},
    {"/progressive_layer_drop", {0, 19, 8}},
};

}  // namespace

std::optional<DeepSpeedVersion> parse_deepspeed_version(std::string_view text) {
  std::array<int, 3> numbers{};
  const char* place = text.data();
  const char* const end = place + text.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0 && (place == end || *place++ != '.')) return std::nullopt;
    const auto [rest, fault] = std::from_chars(place, end, numbers[i]);
    if (fault != std::errc() || numbers[i] < 0) return std::nullopt;
    place = rest;
  }
  const bool ends_well =
      place == end || std::string_view("+.abcrd-").find(*place) != std::string_view::npos;
  if (!ends_well) return std::nullopt;
  return DeepSpeedVersion{numbers[0], numbers[1], numbers[2]};
}

std::string to_text(const DeepSpeedVersion& version) {
  return concat(version.major, '.', version.minor, '.', version.patch);
}

DeepSpeedVersion deepspeed_version_of(const json::object& ds_config) {
  const json::object& ours = fields::section(ds_config, "dstune");
  const std::string text = fields::read_text(ours, "deepspeed_version", "");
  if (text.empty()) return kNewestDeepSpeed;
  const auto version = parse_deepspeed_version(text);
  if (!version) fields::reject("deepspeed_version", "version");
  return *version;
}

std::span<const KeySince> added_keys() { return kAdded; }

std::span<const KeySince> removed_keys() { return kRemoved; }

StepBehaviour behaviour_of(const DeepSpeedVersion& version) {
  const auto is_within = [&](const DeepSpeedVersion& first, const DeepSpeedVersion& last) {
    return first <= version && version <= last;
  };
  return {.can_check_bf16 = version >= DeepSpeedVersion{0, 17, 1},
          .waits_for_each_bucket = is_within({0, 17, 5}, {0, 18, 4}),
          .counts_parameters_in_hooks = is_within({0, 18, 5}, {0, 18, 6}),
          .has_bf16_optimizer_in_stage_0 = version < DeepSpeedVersion{0, 17, 6},
          .misses_bf16_optimizer = is_within({0, 17, 6}, {0, 18, 4}),
          .has_default_leaf_classes = version >= DeepSpeedVersion{0, 18, 0},
          .drops_recomputed = version >= DeepSpeedVersion{0, 19, 3},
          .replaces_linear_of_any_model = version >= DeepSpeedVersion{0, 19, 4},
          .has_other_offload = version < DeepSpeedVersion{0, 19, 8},
          .has_partition_sums = version >= DeepSpeedVersion{0, 19, 8}};
}

}  // namespace dstune
