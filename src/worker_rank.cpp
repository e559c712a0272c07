#include "worker_rank.hpp"

#include <unistd.h>

#include "core/train/run_experiment.hpp"
#include "kernels/backend.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "mpi/mpi_collectives.hpp"
#include "mpi/worker_loop.hpp"

namespace dstune {

namespace {

Outcome run_on_cpu(const Experiment& experiment, MpiGroup& group) {
  cpu::set_blas_threads(experiment.settings.threads_per_rank);
  const auto device = make_device(experiment.settings.backend, experiment.settings.memory_limit);
  MpiCollectives collectives(*device, group);
  return run_experiment(experiment, *device, collectives, group);
}

Outcome run_simulated(const Experiment& experiment, MpiGroup& group) {
  sim::SimDevice device(experiment.settings.memory_limit);
  sim::SimCollectives collectives(device, group.rank(), group.size());
  return run_experiment(experiment, device, collectives, group);
}

Outcome run(const Experiment& experiment, MpiGroup& group) {
  return experiment.settings.backend == "sim" ? run_simulated(experiment, group)
                                              : run_on_cpu(experiment, group);
}

}  // namespace

int run_worker_rank(Environment& environment, const Communicator& world) {
  if (run_worker_loop(world, WorkerOptions{}, run) == LoopResult::orphaned) {
    environment.abandon();
    _exit(1);
  }
  return 0;
}

}  // namespace dstune
