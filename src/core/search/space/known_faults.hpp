// Combinations of DeepSpeed's settings that are known to be fast and wrong.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/deepspeed_version.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

/// A sentence for each fault that DeepSpeed's users have met with such a configuration and that its
/// release has, or may have: what goes wrong, in which versions, and the public report. The step
/// that is modelled here does not have these faults.
std::vector<std::string> known_faults(const StepConfig& config);

}  // namespace dstune
