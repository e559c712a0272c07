#include "core/search/tuners/whole_step.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/tables/announced.hpp"
#include "core/search/schedule/machine_watch.hpp"

namespace dstune {
namespace {

constexpr int kTries = 2;

/// The step time that is announced of `best`, and how far a single step may be from it.
struct Computed {
  Seconds step_time = 0;
  double noise = 0;  ///< relative
  int micro_steps_run = 0;
};

Computed computed_of(const Record& best, const std::vector<Record>& records) {
  Record shown = best;
  double interval = 0;
  for (const Announced& one : announced(records)) {
    if (one.record.experiment.name != best.experiment.name) continue;
    shown = one.record;
    interval = one.interval.value_or(0);
  }
  const Measured& measured = *measured_of(shown);
  const double steps = measured.step_time.noise_percent / 100;
  return {typical_step_time(measured), most_by_noise(std::hypot(steps, interval)),
          measured.micro_steps_run};
}

Experiment whole_step_of(const Record& best, int number) {
  Experiment experiment = best.experiment;
  experiment.settings.whole_steps = true;
  experiment.settings.measure_steps = 1;
  experiment.settings.least_warmup_time = experiment.settings.least_measure_time = 0;
  experiment.repetition = number;
  experiment.is_reference = true;
  experiment.give_up_above = 0;
  experiment.name += concat("_whole", number);
  return experiment;
}

std::string step_time_text(const Computed& computed, std::int64_t micro_steps) {
  return concat("the optimum's step time is computed from ", computed.micro_steps_run, " of its ",
                micro_steps, " micro-steps");
}

/// @param now  seconds since the start of the run
bool has_room(const TuningConfig& config, const Record& best, Seconds now, Seconds step_time) {
  if (step_time > config.settings.experiment_timeout / 2) return false;
  // Set-up and warm-up come again; the steps that are measured make room for the whole one.
  const Seconds cost = best.finished - best.started + step_time;
  return !config.time_budget || now + cost <= *config.time_budget;
}

std::string difference_text(double factor) {
  return concat(fixed(100 * std::abs(factor - 1), 1), factor > 1 ? " % longer" : " % less");
}

}  // namespace

std::optional<std::string> check_whole_step(const TuningConfig& config, const Record& best,
                                            const std::vector<Record>& records,
                                            Scheduler& scheduler) {
  const Measured* measured = measured_of(best);
  if (measured == nullptr || measured->micro_steps_run == 0) return std::nullopt;
  const Computed computed = computed_of(best, records);
  const std::string subject =
      step_time_text(computed, best.experiment.ds_config.step().accumulation_steps);
  // What was found is no worse for that no group is left to look at it again.
  if (scheduler.slots(best.experiment.ranks) == 0) {
    return concat(subject, "; too few workers were left to check it with a whole step");
  }
  Seconds now = 0;
  for (const Record& record : records) now = std::max(now, record.finished);
  if (!has_room(config, best, now, computed.step_time)) {
    return concat(subject, "; there was no time to check it with a whole step");
  }
  log_line(concat("checking ", best.experiment.name, " with a step of all its micro-steps"));
  double nearest = 0;
  int tries = 0;
  while (tries < kTries && has_room(config, best, now, computed.step_time)) {
    ++tries;
    const auto done = scheduler.run({whole_step_of(best, tries)});
    if (done.empty()) return std::nullopt;  // the run was stopped
    now = std::max(now, done.front().finished);
    const Measured* whole = measured_of(done.front());
    if (whole == nullptr) return concat(subject, "; a whole step ", describe(done.front().outcome));
    const double factor = typical_step_time(*whole) / computed.step_time;
    if (nearest == 0 || std::abs(std::log(factor)) < std::abs(std::log(nearest))) nearest = factor;
    if (std::abs(std::log(nearest)) <= computed.noise) {
      return concat(subject, "; a whole step took ", difference_text(nearest),
                    ", which is within noise");
    }
  }
  return concat(subject, "; ", tries == 1 ? "a whole step took " : "both of two whole steps took ",
                difference_text(nearest), tries == 1 ? "" : " or more",
                ", which is more than noise: \"whole_steps\": true in dstune measures whole steps");
}

}  // namespace dstune
