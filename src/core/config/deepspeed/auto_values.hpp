// The value "auto", resolved as Hugging Face's Trainer and accelerate do (docs/deepspeed-step.md,
// "Auto").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.hpp"

namespace dstune {

/// `deepspeed` with each "auto" that Hugging Face resolves in its place replaced: sizes from
/// `hidden_size`, the rest from the defaults of its TrainingArguments. Stage and batch sizes stay
/// "auto", and so does what DeepSpeed itself drops. A precision that is still "auto" is off: one
/// that is open was settled before (apply_overrides()).
json::object resolve_auto(json::object deepspeed, std::int64_t hidden_size);

/// JSON pointers of what resolve_auto() replaces by a default of the Trainer's that its user may
/// well change, and that no time or memory hangs on: learning rate and so on. An optimum that had
/// the default would contradict the flags that the user trains with.
std::vector<std::string> left_to_trainer(const json::object& deepspeed);

/// JSON pointers of every "auto" in `value`.
std::vector<std::string> find_auto(const json::value& value);

}  // namespace dstune
