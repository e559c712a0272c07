// What a configuration does, without the knobs that do nothing where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Sets every knob that changes no step where it stands (the table of knobs says which do) to one
/// value, and limits beyond the model's size to that. What is
/// left may still be the same step under two forms: only a dry run says so (pool.hpp).
class NormalForm {
 public:
  /// @param ranks  of an experiment
  NormalForm(const ModelParameters& parameters, int ranks);

  StepConfig of(const StepConfig& given) const;

  /// Equal for two configurations if their normal forms are.
  std::string key(const StepConfig& config) const;

 private:
  void settle_stage_3(StepConfig& config) const;
  std::int64_t shard_of(int shards) const;
  void settle_gathers(StepConfig& config) const;

  std::vector<std::int64_t> numels_;  // ascending
  std::int64_t total_ = 0;
  std::int64_t shard_ = 0;  // of a rank
  std::int64_t trace_ = 0;  // more than the elements of all uses in a micro-step
  int ranks_;
};

}  // namespace dstune
