// Made-up experiments and records for the tests of report.
#pragma once

#include <cstdint>
#include <string>

#include "core/report/journal/journal.hpp"

namespace dstune::testing_support {

inline Experiment make_experiment(int stage, std::int64_t micro_batch, std::int64_t gas = 1,
                                  int ranks = 2) {
  Experiment experiment;
  experiment.name = "z" + std::to_string(stage) + "_gas" + std::to_string(gas) + "_tmbspg" +
                    std::to_string(micro_batch);
  experiment.ds_config = {{"train_batch_size", micro_batch * gas * ranks},
                          {"train_micro_batch_size_per_gpu", micro_batch},
                          {"gradient_accumulation_steps", gas},
                          {"zero_optimization", {{"stage", stage}}},
                          {"optimizer", {{"type", "Adam"}, {"params", {{"lr", 0.0003}}}}}};
  experiment.ranks = ranks;
  experiment.settings.memory_limit = Bytes{4} << 30U;
  return experiment;
}

inline Measured make_measured(double samples_per_s) {
  Measured measured;
  measured.steps = 3;
  measured.step_time = {4 / samples_per_s, 3.9 / samples_per_s, 4.2 / samples_per_s, 0.8};
  measured.forward_time = 1.2 / samples_per_s;
  measured.backward_time = 2.1 / samples_per_s;
  measured.optimizer_time = 0.6 / samples_per_s;
  measured.samples_per_s = samples_per_s;
  measured.tokens_per_s = 128 * samples_per_s;
  measured.flops_per_s_per_rank = 17e9 * samples_per_s;
  measured.first_loss = 10.9;
  measured.last_loss = 10.7;
  measured.peak_memory.allocated = Bytes{3} << 30U;
  return measured;
}

inline Record make_record(const Experiment& experiment, Outcome outcome) {
  return {experiment, std::move(outcome), {1, 2}, 1.5, 4.25};
}

inline RunIdentity make_identity() { return {to_json(ModelSpec{}), "cpu", "2 x Test CPU"}; }

}  // namespace dstune::testing_support
