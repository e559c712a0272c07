#include "tuner_rank.hpp"

#include "core/base/files/exit_code.hpp"
#include "core/base/files/standard_output.hpp"
#include "core/config/host/find_host_profile.hpp"
#include "core/search/run/tuning_run.hpp"
#include "kernels/backends.hpp"
#include "mpi/base/launcher.hpp"
#include "mpi/base/library.hpp"
#include "mpi/lifeline/signals.hpp"
#include "mpi/pool/mpi_worker_pool.hpp"

namespace dstune {

TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world) {
  const RunInput input = read_run_input(options, world.size());
  if (!input.config) {
    broadcast_stop(world);
    return {input.exit_code, true};
  }
  PoolOptions pool_options;
  pool_options.worker_timeout = input.config->worker_timeout;
  pool_options.interrupted = stop_requested;
  MpiWorkerPool pool(world, pool_options);
  const Surroundings surroundings{
      mpi_library(),      launcher_folder(),         make_backend_to_ask,
      stop_requested,     why_launcher_cannot_print, print,
      user_cache_folder()};
  TunerRankResult result;
  result.exit_code = run_tuning(options, *input.config, pool, pool.workers(), surroundings);
  // Whoever ended the run may kill us before the workers have left.
  leave_exit_code(result.exit_code);
  result.all_alive = pool.stop();
  return result;
}

}  // namespace dstune
