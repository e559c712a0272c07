// The tie rule: which of several that are as fast is the optimum, and what is said of it.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/tuning_config.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// How simple a configuration is; the least of those that are as fast is the optimum. Stage before
/// departures before time before memory: a name never decides.
struct Simplicity {
  int stage = 0;
  int departures = 0;  ///< departures_from_defaults()
  Seconds time = 0;    ///< of its work, in any unit that all have
  Bytes peak_memory = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees the zero of the comparisons
  std::partial_ordering operator<=>(const Simplicity&) const = default;
};

/// Settings of ZeRO that differ from what DeepSpeed does with none but the stage, of those that the
/// stage reads; activation checkpointing counts as one.
int departures_from_defaults(const StepConfig& config);

/// @param record  measured
/// @param time    that it is judged by
Simplicity simplicity_of(const Record& record, Seconds time);

/// Of an optimum than which no other row has a better number.
inline constexpr const char* kFastest = "the fastest";

/// Few words for the optimum's row: kFastest, "the fastest when repeated", or what it has
/// before the fastest, from which noise does not tell it (Simplicity): "as fast as
/// z3_gas1_tmbspg4 within noise, and a smaller stage".
/// @param records  of the run, in the order they finished
std::string choice_reason(const std::vector<Record>& records, Metric metric, const Record& best);

}  // namespace dstune
