// How a search stands: what runs now, what is to come, and the best so far in numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/experiment/outcome/outcome.hpp"

namespace dstune {

/// The numbers of a measurement that people look at first.
struct BestNumbers {
  Seconds step_time = 0;  ///< typical_step_time()
  double samples_per_s = 0;
  double tokens_per_s = 0;
  double flops_per_s_per_rank = 0;
  Bytes peak_memory = 0;  ///< what was allocated, of the rank with the largest peak
};

BestNumbers numbers_of(const Measured& measured);

/// An experiment that runs now, a check or measurement of the machine included.
struct RunningExperiment {
  std::string name;
  Seconds since = 0;  ///< since the run began, as RunStatus::elapsed
};

struct Standing {
  std::vector<RunningExperiment> running = {};
  std::optional<int> expected = {};       ///< about how many experiments there will be in the end
  std::optional<Seconds> time_left = {};  ///< until then, about
  std::optional<BestNumbers> best = {};   ///< of RunStatus::best
  std::string last_event = {};            ///< the last line of the log on an experiment; "": none
  Seconds last_event_at = 0;              ///< since the run began
};

/// "running", a list of {"name", "since_s"}; "expected_experiments", "time_left_s" and
/// "best_numbers" {"step_time_s", "samples_per_s", "tokens_per_s", "flops_per_s_per_rank",
/// "peak_memory_bytes"}, null where they are not known; and "last_event" {"at_s", "text"}, null
/// before there is one.
json::object to_json(const Standing& standing);
/// Inverse of to_json(), which takes what earlier versions did not write as not known.
/// @throws std::exception  if a key has another type
Standing standing_from_json(const json::object& object);

/// "8 s", "12 min" or "1 h 20 min": as exact as what is foretold.
std::string rough_time(Seconds time);

/// "412.6 ms a step, 12.5 samples/s, peak 764.20 MiB".
std::string describe(const BestNumbers& numbers);

/// A line, with its line break and indented by two blanks, for what runs now, for the best so far
/// and for the last event; no line for what there is not.
/// @param best  its name, or ""
/// @param now   seconds since the run began
std::string describe(const Standing& standing, const std::string& best, Seconds now);

}  // namespace dstune
