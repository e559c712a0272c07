// What a configuration does, without the knobs that do nothing where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/model/model_parameters.hpp"

namespace dstune {

/// Sets every knob that a step does not read, or reads without a consequence, to one value: those
/// of other stages, those that another one switches off, limits beyond the model's size. What is
/// left may still be the same step under two forms: only a dry run says so (pool.hpp).
class NormalForm {
 public:
  /// @param ranks  of an experiment
  NormalForm(const ModelParameters& parameters, int ranks);

  StepConfig of(StepConfig config) const;

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
