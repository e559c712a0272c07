#include "worker_rank.hpp"

#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

#include "core/base/host/memory_bounds.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/backends.hpp"
#include "mpi/collectives/mpi_collectives.hpp"
#include "mpi/lifeline/checks.hpp"
#include "mpi/lifeline/lifeline.hpp"
#include "mpi/pool/worker_loop.hpp"

namespace dstune {

namespace {

// How long to wait for the line to be whole: the sentinel itself looks at it rarely.
constexpr Seconds kLifelineHurry = 0.3;

/// Runs experiments one after the other, on a backend that stays.
class Runner {
 public:
  explicit Runner(const Placement& placement) : placement_(placement) {}

  Outcome run(const Experiment& experiment, MpiGroup& group) {
    const RunSettings& settings = experiment.settings;
    Backend& backend = backend_of(settings);
    Device& device = backend.device(
        {settings.memory_limit, settings.threads_per_rank, [&group] { group.poll(); }});
    const auto collectives = backend.collectives(
        group, [&group](Device& on) { return std::make_unique<MpiCollectives>(on, group); });
    return run_experiment(experiment, device, *collectives, group);
  }

 private:
  // All experiments of a run have the same backend, so that it is made once.
  Backend& backend_of(const RunSettings& settings) {
    if (!backend_ || settings.backend != name_) {
      placement_.shares_gpu = settings.share_gpu;
      backend_ = make_backend(settings.backend, placement_);
      name_ = settings.backend;
    }
    return *backend_;
  }

  Placement placement_;
  std::string name_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

int run_worker_rank(Environment& environment, const Communicator& world, const Placement& placement,
                    Sentinel& sentinel) {
  offer_to_oom_killer();
  const auto launcher = sentinel.watch(launcher_gone(1));
  std::optional<Sentinel::Watch> rank0;
  std::optional<Lifeline> lifeline;  // must outlive lifeline_watch, which reads it
  std::optional<Sentinel::Watch> lifeline_watch;
  WorkerOptions options;
  options.devices = describe_devices(placement);
  log_debug(
      concat("worker ", placement.local_rank + 1, " of ", placement.local_size, " on this host"));
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
  Runner runner(placement);
  const LoopResult result =
      run_worker_loop(world, options, [&runner](const Experiment& experiment, MpiGroup& group) {
        return runner.run(experiment, group);
      });
  if (result == LoopResult::finished) return 0;
  environment.abandon();
  const bool quietly = result == LoopResult::orphaned && Environment::mpirun_survives_deaths();
  _exit(quietly ? 0 : 1);
}

}  // namespace dstune
