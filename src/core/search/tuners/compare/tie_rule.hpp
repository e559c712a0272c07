// The tie rule: which of several configurations that are equally fast is the optimum, and how that
// is reported.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/tuning_config.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// How simple a configuration is; the least of those that are equally fast is the optimum. The
/// stage counts first, then departures, time and memory; a name never decides.
struct Simplicity {
  int stage = 0;
  int departures = 0;     ///< see departures_from_defaults()
  double time = 0;        ///< of its work, in any unit that is the same for all
  Bytes peak_memory = 0;  ///< what counts against the limit

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees the zero of the comparisons
  std::partial_ordering operator<=>(const Simplicity&) const = default;
};

/// The number of ZeRO settings, among those that the stage reads, that differ from DeepSpeed's
/// defaults for a configuration with nothing but the stage; activation checkpointing counts as one.
int departures_from_defaults(const StepConfig& config);

/// @param record  a measured record
/// @param time    the time by which it is judged
Simplicity simplicity_of(const Record& record, double time);

/// Whether `a` is the better choice of two measured records: by its score, or, of exactly equal
/// ones, by being simpler. False both ways where nothing tells them apart.
bool is_better_choice(Metric metric, const Record& a, const Record& b);

/// The reason of an optimum whose number is the best of all rows.
inline constexpr const char* kFastest = "the fastest";

/// Why the optimum was chosen, in few words for its row: kFastest, "the fastest when repeated", or
/// what makes it simpler than the fastest, from which noise does not tell it (Simplicity): "as fast
/// as z3_gas1_tmbspg4 within noise, and a smaller stage".
/// @param records  all records of the run, in the order in which they finished
std::string choice_reason(const std::vector<Record>& records, Metric metric, const Record& best);

}  // namespace dstune
