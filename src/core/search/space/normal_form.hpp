// The normal form of a configuration, in which knobs that do nothing have one value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Sets every knob that does not change the step of its configuration (the table of knobs says
/// which do) to one value, and limits beyond the model's size to that size. Two normal forms may
/// still be the same step, which only a dry run shows (pool.hpp).
class NormalForm {
 public:
  /// @param ranks  the number of ranks of an experiment
  NormalForm(const ModelParameters& parameters, int ranks);

  StepConfig of(const StepConfig& given) const;

  /// A key that is equal for two configurations if their normal forms are.
  std::string key(const StepConfig& config) const;

 private:
  void settle_stage_3(StepConfig& config) const;
  std::int64_t shard_of(int shards) const;
  void settle_gathers(StepConfig& config) const;

  std::vector<std::int64_t> numels_;  // ascending
  std::int64_t total_ = 0;
  std::int64_t shard_ = 0;  // elements of a rank's shard
  std::int64_t trace_ = 0;  // above the elements of all uses of parameters in a micro-step
  int ranks_;
};

}  // namespace dstune
