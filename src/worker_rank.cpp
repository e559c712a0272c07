#include "worker_rank.hpp"

#include <optional>

#include <unistd.h>

#include "core/train/run_experiment.hpp"
#include "kernels/backend.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/sim/sim_collectives.hpp"
#include "kernels/sim/sim_device.hpp"
#include "mpi/checks.hpp"
#include "mpi/lifeline.hpp"
#include "mpi/mpi_collectives.hpp"
#include "mpi/worker_loop.hpp"

namespace dstune {

namespace {

constexpr Seconds kLifelineHurry = 0.3;  // the sentinel's looks are few

Outcome run_on_cpu(const Experiment& experiment, MpiGroup& group) {
  cpu::set_blas_threads(experiment.settings.threads_per_rank);
  cpu::take_blas_memory();
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

int run_worker_rank(Environment& environment, const Communicator& world, Sentinel& sentinel) {
  const auto launcher = sentinel.watch(launcher_gone(1));
  std::optional<Sentinel::Watch> rank0;
  std::optional<Lifeline> lifeline;  // is still open when its watch is over
  std::optional<Sentinel::Watch> lifeline_watch;
  WorkerOptions options;
  options.met_rank0 = [&](const WorkerInfo& self, const WorkerInfo& info) {
    if (sees_process(self, info))
      rank0.emplace(sentinel.watch(process_gone(info.pid, "rank 0", 1)));
  };
  options.offered_lifeline = [&](const LifelineAddress& address, int own_rank) {
    lifeline.emplace(address, own_rank);
    lifeline->hurry(kLifelineHurry);
    lifeline_watch.emplace(sentinel.watch([&lifeline]() -> std::optional<Departure> {
      if (!lifeline->is_rank0_gone(steady_now())) return std::nullopt;
      return Departure{"rank 0 is gone (its host says so)", 1};
    }));
  };
  options.told_to_stop = [&] { lifeline_watch.reset(); };
  const LoopResult result = run_worker_loop(world, options, run);
  if (result == LoopResult::finished) return 0;
  environment.abandon();
  const bool quietly = result == LoopResult::orphaned && Environment::mpirun_survives_deaths();
  _exit(quietly ? 0 : 1);
}

}  // namespace dstune
