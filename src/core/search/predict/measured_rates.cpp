#include "core/search/predict/measured_rates.hpp"

#include "core/search/plan/make_experiment.hpp"
#include "core/search/predict/estimated_rates.hpp"

namespace dstune {

Experiment machine_experiment(const TuningConfig& config, int group_size) {
  Experiment experiment = make_experiment(config, group_size, 0, 1, 1);
  experiment.name = "machine";
  experiment.measures_machine = true;
  return experiment;
}

MachineRates measured_rates(const TuningConfig& config, int group_size, Scheduler& scheduler) {
  for (const Record& record : scheduler.run({machine_experiment(config, group_size)})) {
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured != nullptr && measured->machine_rates) return *measured->machine_rates;
  }
  return estimated_rates(config.settings);
}

}  // namespace dstune
