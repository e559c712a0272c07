// Activation checkpointing: which layers recompute their activations in backward instead of keeping
// them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// Activation checkpointing as a training program switches it on (docs/checkpointing.md).
struct ActivationCheckpointing {
  enum class Unit {
    none,
    layer,  ///< transformers: every n-th layer's forward is recomputed, from the first layer on
    group,  ///< Megatron, and loops written by hand: one call recomputes n consecutive layers
  };

  Unit unit = Unit::none;
  std::int64_t count = 1;  ///< n: every n-th layer, or n layers per group
  /// The use_reentrant of torch.utils.checkpoint: the whole unit runs again, and its output and the
  /// gradient of that output live until the unit's backward is over.
  bool reentrant = false;
  /// The program calls deepspeed.checkpointing.checkpoint instead of torch's function; its units
  /// are groups, and it is reentrant.
  bool by_deepspeed = false;

  bool is_on() const { return unit != Unit::none; }
  bool operator==(const ActivationCheckpointing&) const = default;
};

/// The text form, short enough for a name, and one for each value: false, true (every layer), or
/// "every_2_layers", "groups_of_4_layers", which "_reentrant" or "_by_deepspeed" may follow.
json::value to_json(const ActivationCheckpointing& checkpointing);
/// Inverse of to_json. @throws std::invalid_argument  if `value` is none of these forms
ActivationCheckpointing activation_checkpointing_from_json(const json::value& value);

/// The checkpointing for people: "off", "every layer", "every 2nd layer", "groups of 4 layers,
/// reentrant".
std::string describe(const ActivationCheckpointing& checkpointing);

/// The call with which a training program switches it on; "" if it is off.
std::string how_to_switch_on(const ActivationCheckpointing& checkpointing);

}  // namespace dstune
