// An experiment on CPU devices, and what a dry run says of it.
#pragma once

#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::test {

/// Outcomes by rank, on CPU devices with the experiment's memory limit; checks that every rank
/// gives all memory back.
inline std::vector<Outcome> run_on_cpus(const Experiment& experiment) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(experiment.ranks));
  run_on_ranks(experiment.ranks, [&](int rank, ThreadTeam& team) {
    cpu::CpuDevice device(experiment.settings.memory_limit);
    ThreadCollectives collectives(device, team, rank);
    ThreadGroup group(team, rank);

    outcomes[static_cast<std::size_t>(rank)] =
        run_experiment(experiment, device, collectives, group);

    EXPECT_EQ(device.memory().in_use(), 0U) << "rank " << rank;
  });
  return outcomes;
}

inline PeakMemory dry_peak(const Experiment& experiment, int rank) {
  const cpu::CpuDevice cpu(1);
  return std::get<Measured>(dry_run(experiment, rank, &cpu).outcome).peak_memory;
}

/// Tensors of both of the caching allocator's pools.
inline Experiment caching_experiment(int stage, int ranks) {
  TinyExperiment tiny{stage, ranks, 8, 3, DType::bf16, true, {{"overlap_comm", true}}};
  tiny.model.vocab_size = 8192;  // logits of 2 MiB in bf16
  tiny.model.max_positions = 16;
  Experiment experiment = tiny.make();
  experiment.settings.sequence_length = 16;
  experiment.settings.measure_steps = 1;
  experiment.settings.allocator = AllocatorModel::caching;
  return experiment;
}

}  // namespace dstune::test
