// DeepSpeed's names of experiments, byte for byte (docs/deepspeed-step.md, "DeepSpeed's autotuner:
// names").
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/base/json.hpp"

namespace dstune {

using TuningKeys = std::set<std::string, std::less<>>;

/// The name that canonical_name() of deepspeed/autotuning/utils.py makes: acronym and value of
/// every key of `config`, at any depth, that is one of `keys`, in the order of `config`;
/// micro-batch and accumulation steps are always part of it, and sections of offloading as a whole.
/// Numbers must be spelt as in the user's file: 4e3 is "4000.0", 4000 is "4000".
std::string canonical_name(const json::object& config, TuningKeys keys, std::string_view prefix);

}  // namespace dstune
