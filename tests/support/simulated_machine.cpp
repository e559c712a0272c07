#include "tests/support/simulated_machine.hpp"

#include <cstddef>

#include "core/experiment/step_config.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::testing_support {
namespace {

constexpr int kRanks = 2;

Measured measure(Bytes peak, double samples_per_s, const Experiment& experiment, double noise) {
  Measured measured;
  const auto batch = experiment.ds_config.json().at("train_batch_size").to_number<double>();
  measured.steps = 6;
  const Seconds step_time = batch / samples_per_s;
  measured.step_time = {step_time, step_time, step_time, 0};
  measured.step_time.noise_percent = noise;
  measured.samples_per_s = samples_per_s;
  measured.flops_per_s_per_rank = samples_per_s * 1e9;
  measured.peak_memory.allocated = peak;
  return measured;
}

}  // namespace

Point point_of(const Experiment& experiment) {
  const StepConfig step = make_step_config(experiment);
  return {step.stage, step.micro_batch, step.accumulation_steps};
}

double saturating(const Point& point) {
  const auto micro_batch = static_cast<double>(point.micro_batch);
  return 100 * micro_batch / (micro_batch + 2) * (1 - 0.02 * point.stage);
}

Bytes SimulatedMachine::peak(const Point& point) const {
  return states.at(static_cast<std::size_t>(point.stage)) +
         static_cast<Bytes>(point.micro_batch) * per_micro_batch;
}

Outcome SimulatedMachine::run(const Experiment& experiment) const {
  const auto point = point_of(experiment);
  const Bytes limit = experiment.settings.memory_limit;
  if (peak(point) > limit) {
    return OutOfMemory{0, MemoryCategory::activations, per_micro_batch, limit, limit};
  }
  if (fails(point)) return Failed{FailureKind::error, "as the test says"};
  Measured measured = measure(peak(point), samples_per_s(point), experiment, noise_percent);
  measured.peak_memory.reserved = reserved;
  return measured;
}

MemoryPredictor SimulatedMachine::predictor() const {
  return [machine = *this](const Experiment& experiment, int) -> Outcome {
    const auto point = point_of(experiment);
    const Bytes activations = static_cast<Bytes>(point.micro_batch) * machine.per_micro_batch;
    Measured measured;
    auto& peak = measured.peak_memory;
    peak.allocated =
        machine.peak(point) + machine.predicted_too_much - machine.predicted_too_little;
    peak.at_peak.at(MemoryCategory::activations) = activations;
    peak.at_peak.at(MemoryCategory::optimizer) = peak.allocated - activations;
    peak.categories = peak.at_peak;
    return measured;
  };
}

TuningConfig make_tuning_config(Bytes memory_limit) {
  TuningConfig config;
  config.source = "config.json";
  config.deepspeed.set("optimizer", {{"type", "AdamW"}});
  config.settings.model.vocab_size = 64;
  config.settings.model.max_positions = 16;
  config.settings.model.hidden_size = 8;
  config.settings.model.inner_size = 32;
  config.settings.model.num_layers = 1;
  config.settings.model.num_heads = 2;
  config.settings.sequence_length = 16;
  config.settings.memory_limit = memory_limit;
  config.stages = {0, 1, 2, 3};
  config.tuner = "fast";
  return config;
}

SimulatedRun run_tuning(const TuningConfig& config, const SimulatedMachine& machine, int groups) {
  const MemoryDirectory directory;
  return run_tuning(config, machine, groups, directory / "journal.jsonl", Journal::Mode::create);
}

SimulatedRun run_tuning(const TuningConfig& config, const SimulatedMachine& machine, int groups,
                        const std::string& path, Journal::Mode mode,
                        const Scheduler::StopRequest& stop_requested) {
  ScriptedPool pool(workers_on("node", 1, groups * kRanks),
                    [&](const Experiment& experiment) { return machine.run(experiment); });
  Journal journal(path, mode, {to_json(config.settings.model), "cpu", "simulated"});
  Scheduler scheduler(pool, journal, {}, stop_requested);
  SimulatedRun run;
  run.result = tune(config, kRanks, scheduler, machine.predictor());
  run.started = pool.names();
  run.touches = pool.touches();
  if (run.result.best) run.best = run.result.best->experiment.name;
  return run;
}

}  // namespace dstune::testing_support
