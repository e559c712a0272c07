// A GPT-2 small enough for a whole training step in milliseconds, and experiments with it.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/dtype.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune::test {

/// Sizes without common factors, so that nothing divides evenly by chance.
ModelSpec tiny_model();

struct TinyExperiment {
  int stage = 0;
  int ranks = 1;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  DType dtype = DType::fp32;
  bool client = true;      ///< no "optimizer" section
  json::object zero = {};  ///< further keys of zero_optimization
  ModelSpec model = tiny_model();
  json::object root = {};       ///< further keys of the whole; sections are merged
  json::object optimizer = {};  ///< the section, instead of `client`'s
  int devices_per_node = 0;

  Experiment make() const;
  std::string name() const;  ///< for failure messages
};

}  // namespace dstune::test
