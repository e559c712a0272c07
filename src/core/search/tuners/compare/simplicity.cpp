#include "core/search/tuners/compare/simplicity.hpp"

#include <variant>

#include "core/base/json.hpp"
#include "core/experiment/knobs.hpp"

namespace dstune {
namespace {

// As DeepSpeed's release fills it in; what says which release that is stays.
StepConfig usual_config(const Experiment& experiment, int stage) {
  json::object defaults = experiment.ds_config;
  defaults["zero_optimization"] = json::object{{"stage", stage}};
  return make_step_config(defaults);
}

}  // namespace

int departures_from_defaults(const Experiment& experiment) {
  const StepConfig config = make_step_config(experiment);
  const StepConfig usual = usual_config(experiment, config.stage);
  int count = config.checkpointing.is_on() ? 1 : 0;
  for (const Knob& knob : kKnobs) {
    const bool counts = knob.section == "/zero_optimization" && knob.stages.contains(config.stage);
    if (counts && !is_same(knob, config, usual)) ++count;
  }
  return count;
}

Simplicity simplicity_of(const Record& record, Seconds time) {
  return {make_step_config(record.experiment).stage, departures_from_defaults(record.experiment),
          time, std::get<Measured>(record.outcome).peak_memory.counted()};
}

}  // namespace dstune
