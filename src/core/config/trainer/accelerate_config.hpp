// The YAML that `accelerate config` writes.
#pragma once

#include "core/base/json.hpp"
#include "core/config/trainer/translation.hpp"

namespace dstune {

/// The DeepSpeed part: the file that `deepspeed_config.deepspeed_config_file` names, or what
/// DeepSpeedPlugin of accelerate makes of the other keys, with the precision of `mixed_precision`.
/// It says nothing of the model.
json::object translate_accelerate_config(Translation& file);

}  // namespace dstune
