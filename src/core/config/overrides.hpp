// What the command line changes in the file before it is checked: --without, --precision, and the
// options that stand for keys of the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/input/problems.hpp"

namespace dstune {

struct Overrides {
  std::vector<std::string> notes;     ///< what the optimum must be read with
  std::vector<std::string> warnings;  ///< to log once
  std::string open_precision;         ///< see TuningConfig
};

/// Takes the keys of --without out of `file`, writes the values of options that stand for keys into
/// it, with a warning for each that was another, then settles the precision.
///
/// A key of --without is a JSON pointer, a dotted path, or a name, which is left out wherever it
/// stands outside "autotuning" and "dstune". One that stands nowhere is a problem.
///
/// --sequence-length, --checkpointing and --lora-r are in section "dstune", which is made if there
/// is none. With --sequence-length a number or a list of "dstune.lengths" goes.
///
/// With --precision exactly that one of fp16 and bf16 is enabled, or none for fp32, whatever the
/// file says. Without it a precision that is "auto" is settled as open_precision, the best that the
/// file allows the Trainer: bf16 where that is "auto", else fp16. Whether the machine agrees is
/// seen later (core/search/feasibility/precision.hpp).
Overrides apply_overrides(json::object& file, const CommandLine& options, Problems& problems);

/// "bf16, assumed since no precision is set ("auto"); use --precision fp16 or fp32 to change it",
/// of an open_precision; "" of none.
std::string open_precision_text(std::string_view precision);

}  // namespace dstune
