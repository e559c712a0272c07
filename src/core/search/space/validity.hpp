// Finds the configurations that cannot be measured: DeepSpeed refuses them, or they are not
// modelled.
#pragma once

#include <optional>
#include <string>

#include "core/config/tuning_config.hpp"
#include "core/experiment/deepspeed_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Says why a configuration cannot be measured.
class Validity {
 public:
  /// The references must outlive this.
  Validity(const TuningConfig& config, const ModelParameters& parameters, int ranks)
      : config_(config), parameters_(parameters), ranks_(ranks) {}

  /// The fault in one sentence, which is the same for all configurations with that fault; none if
  /// the configuration is valid.
  std::optional<std::string> fault(const DeepSpeedConfig& config) const;

 private:
  std::optional<std::string> step_fault(const StepConfig& step) const;

  const TuningConfig& config_;
  const ModelParameters& parameters_;
  int ranks_;
};

}  // namespace dstune
