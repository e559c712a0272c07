// The keys of a DeepSpeed configuration (docs/deepspeed-step.md, "Keys").
#pragma once

#include "core/experiment/knob.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// The whole file. Keys without a rule pass through untouched. zero_optimization.stage and the
/// three batch sizes are read elsewhere (core/config/deepspeed/batch_sizes.hpp,
/// core/config/tuning_config.hpp).
const Section& deepspeed_section();

}  // namespace dstune
