// Activation checkpointing: which layers compute again in backward what they would have kept.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_fwd.hpp"

namespace dstune {

/// Activation checkpointing as a training program switches it on (docs/checkpointing.md).
struct ActivationCheckpointing {
  enum class Unit {
    none,
    layer,  ///< transformers: the forward of every n-th layer, from the first one on
    group,  ///< Megatron, and loops by hand: calls of n layers, one behind the other
  };

  Unit unit = Unit::none;
  std::int64_t count = 1;  ///< n
  /// torch.utils.checkpoint's use_reentrant: all of it runs again, and its output and the gradient
  /// by that live until its backward is over.
  bool reentrant = false;
  /// deepspeed.checkpointing.checkpoint instead of torch's: groups, reentrant.
  bool by_deepspeed = false;

  bool is_on() const { return unit != Unit::none; }
  bool operator==(const ActivationCheckpointing&) const = default;
};

/// One form for each, short enough for a name: false, true (every layer), or "every_2_layers",
/// "groups_of_4_layers", either with "_reentrant" or "_by_deepspeed" behind it.
json::value to_json(const ActivationCheckpointing& checkpointing);
/// Inverse of to_json. @throws std::invalid_argument  if `value` is nothing of that
ActivationCheckpointing activation_checkpointing_from_json(const json::value& value);

/// "off", "every layer", "every 2nd layer", "groups of 4 layers, reentrant"
std::string describe(const ActivationCheckpointing& checkpointing);

/// The call with which a training program switches it on; "" if it is off.
std::string how_to_switch_on(const ActivationCheckpointing& checkpointing);

}  // namespace dstune
