// A point of any search space.
#pragma once

#include <string>

#include "core/base/json.hpp"

namespace dstune {

/// What a tuner wants measured: ranks and machine settings are the run's.
struct Candidate {
  std::string name;        ///< folder of the experiment; one name, one measurement
  json::object ds_config;  ///< complete DeepSpeed JSON, see Experiment
  int repetition = 0;      ///< see Experiment
};

}  // namespace dstune
