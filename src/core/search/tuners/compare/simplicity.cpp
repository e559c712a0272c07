#include "core/search/tuners/compare/simplicity.hpp"

#include <variant>

#include "core/base/json.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {
namespace {

// As DeepSpeed's release fills it in; what says which release that is stays.
StepConfig usual_config(const Experiment& experiment, int stage) {
  json::object defaults = experiment.ds_config;
  defaults["zero_optimization"] = json::object{{"stage", stage}};
  return make_step_config(defaults);
}

template <class... Members>
int count_different(const StepConfig& one, const StepConfig& other, Members... members) {
  return ((one.*members != other.*members ? 1 : 0) + ... + 0);
}

int count_of_stage_3(const StepConfig& config, const StepConfig& usual) {
  return count_different(
      config, usual, &StepConfig::sub_group_size, &StepConfig::prefetch_bucket_size,
      &StepConfig::param_persistence_threshold, &StepConfig::max_live_parameters,
      &StepConfig::max_reuse_distance, &StepConfig::model_persistence_threshold,
      &StepConfig::module_granularity_threshold, &StepConfig::allgather_sequential,
      &StepConfig::use_all_reduce_for_fetch_params, &StepConfig::quantized_weights,
      &StepConfig::quantized_gradients, &StepConfig::hpz_partition_size,
      &StepConfig::mics_shard_size);
}

}  // namespace

int departures_from_defaults(const Experiment& experiment) {
  const StepConfig config = make_step_config(experiment);
  int count = config.checkpointing.is_on() ? 1 : 0;
  if (config.stage == 0) return count;
  const StepConfig usual = usual_config(experiment, config.stage);
  count += count_different(config, usual, &StepConfig::reduce_bucket_size,
                           &StepConfig::contiguous_gradients, &StepConfig::reduce_scatter,
                           &StepConfig::overlap_comm);
  if (config.stage == 3) return count + count_of_stage_3(config, usual);
  return count + count_different(config, usual, &StepConfig::round_robin_gradients,
                                 &StepConfig::use_multi_rank_bucket_allreduce);
}

Simplicity simplicity_of(const Record& record, Seconds time) {
  return {make_step_config(record.experiment).stage, departures_from_defaults(record.experiment),
          time, std::get<Measured>(record.outcome).peak_memory.counted()};
}

}  // namespace dstune
