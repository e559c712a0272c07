#include "core/search/tuners/compare/tie_rule.hpp"

#include <algorithm>
#include <variant>

#include "core/base/text.hpp"
#include "core/experiment/knobs.hpp"
#include "core/search/tuners/compare/deciding_measurement.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune {
namespace {

/// The record with the highest score among those with a number; `best` if none has a higher one.
template <class NumberOf>
const Record& fastest(const std::vector<Record>& records, Metric metric, const Record& best,
                      NumberOf number_of) {
  const Record* found = &best;
  const Measured* to_beat = number_of(best);
  for (const Record& record : records) {
    const bool is_itself = record.experiment.ds_config == best.experiment.ds_config;
    const Measured* number =
        record.experiment.repetition == 0 && !is_itself ? number_of(record) : nullptr;
    if (number == nullptr) continue;
    if (to_beat != nullptr && score(metric, *number) <= score(metric, *to_beat)) continue;
    found = &record;
    to_beat = number;
  }
  return *found;
}

std::string what_it_has_before(const Record& other, const Record& best) {
  const Simplicity ours = simplicity_of(best, 0);
  const Simplicity theirs = simplicity_of(other, 0);
  if (ours.stage < theirs.stage) return "a smaller stage";
  if (ours.stage == theirs.stage && ours.departures < theirs.departures) {
    return "nearer to DeepSpeed's defaults";
  }
  return "";
}

}  // namespace

std::string choice_reason(const std::vector<Record>& records, Metric metric, const Record& best) {
  const Comparison comparison(best, records);
  const auto deciding = [&](const Record& record) { return comparison.deciding(record); };
  const Record& rival = fastest(records, metric, best, deciding);
  if (&rival == &best) {
    return &fastest(records, metric, best, measured_of) == &best ? kFastest
                                                                 : "the fastest when repeated";
  }
  const std::string advantage = what_it_has_before(rival, best);
  const std::string same = concat("as fast as ", rival.experiment.name, " within noise");
  if (!advantage.empty()) return concat(same, ", and ", advantage);
  return best.finished < rival.finished ? concat(same, ", and measured before it") : same;
}

int departures_from_defaults(const StepConfig& config) {
  StepConfig usual = config;
  int count = config.checkpointing.is_on() ? 1 : 0;
  for (const Knob& knob : kKnobs) {
    const bool counts = knob.section == "/zero_optimization" && knob.rule.key != "stage" &&
                        knob.stages.contains(config.stage);
    if (!counts) continue;
    set_to_default(knob, usual);
    if (!is_same(knob, config, usual)) ++count;
  }
  return count;
}

Simplicity simplicity_of(const Record& record, double time) {
  const StepConfig& config = record.experiment.ds_config.step();
  return {config.stage, departures_from_defaults(config), time,
          std::get<Measured>(record.outcome).peak_memory.counted()};
}

bool is_better_choice(Metric metric, const Record& a, const Record& b) {
  const double first = score(metric, std::get<Measured>(a.outcome));
  const double second = score(metric, std::get<Measured>(b.outcome));
  return first != second ? first > second : simplicity_of(a, 0) < simplicity_of(b, 0);
}

}  // namespace dstune
