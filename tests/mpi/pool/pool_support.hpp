// A pool on rank 0 and worker loops on the other ranks, for the length of one scenario.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "mpi/pool/mpi_worker_pool.hpp"
#include "mpi/pool/worker_loop.hpp"

namespace dstune::test {

inline Experiment make_experiment(const std::string& name, int ranks, Seconds timeout = 60) {
  Experiment experiment;
  experiment.name = name;
  experiment.ranks = ranks;
  experiment.settings.memory_limit = 1U << 30U;
  experiment.settings.experiment_timeout = timeout;
  return experiment;
}

/// What every worker says that it has.
inline std::vector<DeviceInfo> devices_of_workers() {
  return {{"gpu", "", 0, 0, false, "no driver"}, {"cpu", "Test CPU", 1000, 900, true, ""}};
}

/// What the runners of the tests return: told apart by its number of steps.
inline Measured measured(int steps) {
  Measured outcome;
  outcome.steps = steps;
  return outcome;
}

/// Its group's size, after everybody agreed to it.
inline Outcome count_members(const Experiment& experiment, MpiGroup& group) {
  const auto names = group.gather(experiment.name);
  const bool agreed = std::all_of(names.begin(), names.end(),
                                  [&](const auto& name) { return name == experiment.name; });
  return measured(group.vote(agreed) ? group.size() : -1);
}

/// Waits until `count` experiments ended; in the order in which they did.
inline std::vector<Completion> wait_for(MpiWorkerPool& pool, std::size_t count) {
  std::vector<Completion> all;
  while (all.size() < count) {
    for (auto& completion : pool.wait()) all.push_back(std::move(completion));
  }
  return all;
}

/// Waits until `count` workers are idle.
inline void wait_for_idle(MpiWorkerPool& pool, std::size_t count) {
  for (Backoff backoff; pool.idle().size() < count; backoff.pause()) pool.poll();
}

/// Collective over MPI_COMM_WORLD: rank 0 calls scenario(pool), the others work with `runner`.
/// @returns whether the run ended with every rank alive, as that rank sees it
template <class Scenario>
bool with_pool(const PoolOptions& options, const ExperimentRunner& runner, Scenario scenario) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  if (world.rank() != 0) {
    WorkerOptions often;
    often.heartbeat = 0.1;
    often.devices = devices_of_workers();
    return run_worker_loop(world, often, runner) == LoopResult::finished;
  }
  MpiWorkerPool pool(world, options);
  scenario(pool);
  return pool.stop();
}

inline constexpr std::size_t kWorkers = 4;  // RANKS 5: rank 0 and these

/// Rank of this process in the world, as the runners need it.
inline int world_rank() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

[[noreturn]] inline void poll_forever(MpiGroup& group) {
  for (Backoff backoff;; backoff.pause()) group.poll();
}

inline int steps_of(const Completion& completion) {
  return std::holds_alternative<Measured>(completion.outcome)
             ? std::get<Measured>(completion.outcome).steps
             : -1;
}

inline Failed failure_of(const Completion& completion) {
  return std::holds_alternative<Failed>(completion.outcome)
             ? std::get<Failed>(completion.outcome)
             : Failed{FailureKind::quarantined, "did not fail"};
}

}  // namespace dstune::test
