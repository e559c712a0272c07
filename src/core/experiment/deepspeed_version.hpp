// Which release of DeepSpeed is meant, and what changed between the releases.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/json.hpp"

namespace dstune {

struct DeepSpeedVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): of the comparison with 0 that the compiler makes
  auto operator<=>(const DeepSpeedVersion&) const = default;
};

/// The oldest and the newest release for which everything below is known.
inline constexpr DeepSpeedVersion kOldestDeepSpeed{0, 15, 0};
inline constexpr DeepSpeedVersion kNewestDeepSpeed{0, 19, 8};

/// The version in a text such as "0.18.2", which may have the suffixes that pip shows
/// ("0.18.2+cu128", "0.18.2rc1"); none for any other text.
std::optional<DeepSpeedVersion> parse_deepspeed_version(std::string_view text);
/// The version as text: "0.18.2".
std::string to_text(const DeepSpeedVersion& version);

/// Where the JSON of an experiment names its release, unless that is the newest. The key is not one
/// of DeepSpeed's, and the optimum's file does not have it.
inline constexpr const char* kVersionPointer = "/dstune/deepspeed_version";

/// The release that an experiment's JSON is for. @throws std::invalid_argument  if its text is no
/// version
DeepSpeedVersion deepspeed_version_of(const json::object& ds_config);

/// A key that releases before `since` do not read.
struct KeySince {
  std::string_view pointer;
  DeepSpeedVersion since;
};

/// Keys that were added to sections whose keys DeepSpeed checks: an earlier release refuses a file
/// that has one.
std::span<const KeySince> added_keys();

/// Keys that releases from `since` on refuse, whatever the value is.
std::span<const KeySince> removed_keys();

/// How a release's step differs from that of the newest (docs/deepspeed-versions.md).
struct StepBehaviour {
  /// Stages 1 and 2 can look for inf and NaN in bf16 gradients (since 0.17.1).
  bool can_check_bf16 = true;
  /// Backward waits for each bucket that it hands over to be reduced, so that overlap_comm with
  /// contiguous_gradients hides nothing in stages 1 and 2 (0.17.5 to 0.18.4).
  bool waits_for_each_bucket = false;
  /// Every gradient's hook counts all parameters (0.18.5 and 0.18.6).
  bool counts_parameters_in_hooks = false;
  /// Stage 0 in bf16 runs the BF16 optimizer, which divides its states among the ranks (before
  /// 0.17.6). This is not modelled.
  bool has_bf16_optimizer_in_stage_0 = false;
  /// A configuration that asks for the BF16 optimizer gets one without ZeRO (0.17.6 to 0.18.4).
  /// This is not modelled.
  bool misses_bf16_optimizer = false;
  /// Blocks of experts are leaf modules by themselves (since 0.18.0).
  bool has_default_leaf_classes = true;
  /// Stage 3 keeps frozen parameters that a checkpoint's second forward used for the module whose
  /// backward began it, and releases them with it (since 0.19.3).
  bool drops_recomputed = true;
  /// Stage 3 puts its memory_efficient_linear in the place of torch's also for a model that was not
  /// made under zero.Init (since 0.19.4).
  bool replaces_linear_of_any_model = true;
  /// The optimizer is offloaded otherwise: in stages 1 and 2 other copies and waits, and in stage 2
  /// lost gradients where there are three micro-steps or more; in stage 3 it is not known (before
  /// 0.19.8, with which the step here was compared; nor is which release brought what). This is not
  /// modelled.
  bool has_other_offload = false;
  /// Stages 1 and 2 have a buffer of the partition for sums in fp32, to which averages are added as
  /// they come; before, stage 1 had sums of its own tensors alone, and stage 2 sums in the model's
  /// type (since 0.19.8).
  bool has_partition_sums = true;
};

StepBehaviour behaviour_of(const DeepSpeedVersion& version);

}  // namespace dstune
