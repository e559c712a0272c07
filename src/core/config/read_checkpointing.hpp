// "dstune.activation_checkpointing": one way of checkpointing, or a list to tune over.
#pragma once

#include <vector>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Where an experiment's DeepSpeed JSON has it: DeepSpeed ignores "dstune", and emitted files lack
/// it.
inline constexpr const char* kCheckpointingPointer = "/dstune/activation_checkpointing";

/// What the file says, in the form of to_json(ActivationCheckpointing), each once; empty: nothing.
/// A value is false, true, such a form, or an object of "every_n_layers" or
/// "checkpoint_num_layers", "use_reentrant" and "by".
/// @param file  a whole CONFIG.json
std::vector<json::value> read_checkpointing(const json::object& file, Problems& problems);

/// Puts the first value into `deepspeed`, whose "activation_checkpointing" is checked: DeepSpeed
/// reads that section only where a model calls its checkpointing.
void set_checkpointing(const std::vector<json::value>& values, json::object& deepspeed,
                       Problems& problems);

}  // namespace dstune
