#include "bench/sim_table.hpp"

#include "core/base/text.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/experiment/step_config.hpp"
#include "core/input/problems.hpp"
#include "core/train/training_step.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune::bench {
namespace {

using Values = std::vector<json::value>;

struct Axis {
  const char* key;
  Values values;
  int from_stage;  ///< below it the key does nothing
};

std::vector<Axis> axes(std::int64_t hidden) {
  return {{"reduce_bucket_size", {hidden * hidden, 1e6, 5e6, 5e7}, 1},
          {"overlap_comm", {false, true}, 1},
          {"contiguous_gradients", {false, true}, 2},
          {"stage3_prefetch_bucket_size", {0, 1e6, 5e7}, 3},
          {"stage3_param_persistence_threshold", {0, 10 * hidden, 1e6}, 3}};
}

/// Every combination of what does something in `stage`; contiguity does nothing in stage 3.
std::vector<json::object> sections(int stage, std::int64_t hidden) {
  std::vector<json::object> all = {{{"stage", stage}}};
  for (const Axis& axis : axes(hidden)) {
    const bool is_for_stage_2 = axis.from_stage == 2;
    if (stage < axis.from_stage || (is_for_stage_2 && stage != 2)) continue;
    std::vector<json::object> more;
    for (const json::object& section : all) {
      for (const json::value& value : axis.values) {
        more.push_back(section);
        more.back()[axis.key] =
            value.is_double() ? json::value(value.to_number<std::int64_t>()) : value;
      }
    }
    all = std::move(more);
  }
  return all;
}

/// The second step: the first of stage 3 learns the order of its gathers.
Outcome simulate(const Experiment& experiment) {
  sim::SimDevice device(Bytes{1} << 45U);
  sim::SimCollectives collectives(device, 0, experiment.ranks);
  const StepConfig config = make_step_config(experiment);
  TrainingStep step(experiment.settings, config, device, collectives);
  step.run();
  const Seconds time = step.run().total;
  Measured measured;
  measured.steps = 1;
  measured.step_time = {time, time, time, 0};
  measured.samples_per_s = static_cast<double>(config.train_batch(experiment.ranks)) / time;
  measured.peak_memory = device.memory().peak();
  return measured;
}

ModelSpec read_model(const std::filesystem::path& path) {
  Problems problems(path);
  ModelRemarks remarks;
  const auto spec = read_model_name(path, {"."}, "", problems, remarks);
  problems.throw_if_any();
  return *spec;
}

}  // namespace

Table measure_on_sim(const std::filesystem::path& model, int ranks) {
  RunSettings settings;
  settings.model = read_model(model);
  settings.sequence_length = 256;
  settings.backend = "sim";
  settings.memory_limit = Bytes{1} << 45U;
  settings.devices_per_node = 8;
  Table table;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const json::object& section : sections(stage, settings.model.hidden_size)) {
      for (const int micro_batch : {1, 2, 4, 8, 16}) {
        for (const bool checkpoints : {false, true}) {
          Experiment experiment;
          experiment.name = concat("z", stage, "_", table.records.size());
          experiment.ds_config = {{"train_batch_size", micro_batch * ranks},
                                  {"train_micro_batch_size_per_gpu", micro_batch},
                                  {"gradient_accumulation_steps", 1},
                                  {"bf16", {{"enabled", true}}},
                                  {"dstune", {{"activation_checkpointing", checkpoints}}},
                                  {"zero_optimization", section}};
          experiment.ranks = ranks;
          experiment.settings = settings;
          const Outcome outcome = simulate(experiment);
          table.records.push_back({std::move(experiment), outcome, {}, 0, 0});
        }
      }
    }
  }
  return table;
}

}  // namespace dstune::bench
