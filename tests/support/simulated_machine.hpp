// A machine whose memory and speed are formulas, and a tuning run on it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/search/feasibility/make_experiment.hpp"
#include "core/search/tuners/tune.hpp"
#include "tests/support/scripted_pool.hpp"

namespace dstune::testing_support {

/// The point that `experiment` measures, read back from its DeepSpeed JSON.
Point point_of(const Experiment& experiment);

/// Throughput that grows with the micro-batch and levels off, lower in higher stages.
double saturating(const Point& point);

struct SimulatedMachine {
  std::array<Bytes, 4> states = {400, 300, 200, 100};  ///< bytes per rank by stage
  Bytes per_micro_batch = 10;
  /// What the dry run adds to each peak, and subtracts: how wrong it is.
  Bytes predicted_too_much = 0;
  Bytes predicted_too_little = 0;
  Bytes reserved = 0;  ///< by the allocator of whatever runs, if it caches
  double noise_percent = 0.1;
  std::function<double(const Point&)> samples_per_s = [](const Point&) { return 100.0; };
  std::function<bool(const Point&)> fails = [](const Point&) { return false; };

  Bytes peak(const Point& point) const;
  Outcome run(const Experiment& experiment) const;
  MemoryPredictor predictor() const;
};

/// A small model, stages 0 to 3, `memory_limit` bytes per rank; searched in fast mode.
TuningConfig make_tuning_config(Bytes memory_limit);

/// One run of tune() with groups of two ranks.
struct SimulatedRun {
  TuningResult result;
  std::vector<std::string> started;  ///< names, in order
  std::string best;                  ///< name, or ""
  int touches = 0;                   ///< how often it stayed in touch with the workers
};
SimulatedRun run_tuning(const TuningConfig& config, const SimulatedMachine& machine,
                        int groups = 1);

/// The same with a journal at `path` (kept), created or resumed.
SimulatedRun run_tuning(const TuningConfig& config, const SimulatedMachine& machine, int groups,
                        const std::string& path, Journal::Mode mode,
                        const Scheduler::StopRequest& stop_requested = {});

}  // namespace dstune::testing_support
