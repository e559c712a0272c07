// dstune-mpi: rank 0 tunes, all other ranks run experiments.

#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/exit_code.hpp"
#include "core/base/files/standard_output.hpp"
#include "core/base/host/this_host.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line/command_line.hpp"
#include "kernels/backends.hpp"
#include "mpi/base/bundle.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/base/environment.hpp"
#include "mpi/base/launcher.hpp"
#include "mpi/base/library.hpp"
#include "mpi/base/placement.hpp"
#include "mpi/lifeline/checks.hpp"
#include "mpi/lifeline/sentinel.hpp"
#include "mpi/lifeline/signals.hpp"
#include "tuner_rank.hpp"
#include "worker_rank.hpp"

namespace {

using namespace dstune;

constexpr Seconds kStartLimit = 120;
constexpr Seconds kEndLimit = 20;
constexpr Seconds kLookEvery = 0.25;
constexpr useconds_t kReadingTime = 200'000;

// Messages that need no MPI are printed by one process, however many were started.
bool is_first_process() { return rank_of_launcher().value_or(0) == 0; }

void log_as_rank(int rank) { enable_debug_log(concat("[rank ", rank, " ", host_name(), "]")); }

void leave_last_words(const Departure& departure) {
  if (is_first_process()) leave_exit_code(departure.exit_code);
  log_error(departure.reason);
}

/// The seconds in DSTUNE_START_TIMEOUT; kStartLimit if there are none.
Seconds start_limit() {
  const char* text = std::getenv("DSTUNE_START_TIMEOUT");
  const double given = text == nullptr ? 0 : std::strtod(text, nullptr);
  return given > 0 ? given : kStartLimit;
}

/// The communicator of all ranks, and this rank's placement.
struct Meeting {
  Communicator world;
  Placement placement;
};

/// Starts MPI, which waits for all ranks. A rank that dies in here leaves all others waiting; the
/// checks of the sentinel end them. A rank that leaves without MPI_Finalize leaves by 0 where
/// mpirun survives deaths: otherwise mpirun may never end.
Meeting meet_all_ranks(Sentinel& sentinel, std::optional<Environment>& environment, int* argc,
                       char*** argv) {
  const auto limit = sentinel.watch(
      deadline("the meeting of all ranks (MPI_Init)", start_limit(),
               "a rank or its host does not answer; DSTUNE_START_TIMEOUT sets the limit in seconds",
               exit_interrupted));
  const auto neighbours = sentinel.watch(rank_of_this_host_gone(exit_interrupted));
  const auto stop = sentinel.watch([]() -> std::optional<Departure> {
    if (!stop_requested()) return std::nullopt;
    return Departure{"a signal came before all ranks had met", exit_interrupted};
  });
  environment.emplace(argc, argv);
  auto world = Communicator::duplicate(MPI_COMM_WORLD);
  const Placement placement = find_placement(world);
  return {std::move(world), placement};
}

/// What there is to say where a launcher has `started` several ranks and this one met none of them,
/// so that there are `ranks`; "" else. Python environments may have another MPI's mpirun.
std::string why_alone(int started, int ranks) {
  if (ranks > 1 || started <= ranks) return "";
  const std::vector<Problem> problems = {
      {concat("-n ", started),
       concat("are ranks that cannot find each other: this mpirun belongs to another MPI than the "
              "program's, which is ",
              mpi_library(),
              "; accepted: the mpirun of that MPI, which in a bundle or a wheel is next to the "
              "program, or dstune (scripts/tune.sh), which finds it")}};
  return ConfigError("mpirun", problems).what();
}

int run_rank_zero(const CommandLine& options, Environment& environment, const Communicator& world,
                  bool by_zero) {
  watch_crashes(exit_internal_error, by_zero);
  const auto result = run_tuner_rank(options, world);
  leave_exit_code(result.exit_code);
  if (result.all_alive) return result.exit_code;
  environment.abandon();
  _exit(by_zero ? exit_found : result.exit_code);  // MPI_Finalize would wait for dead ranks
}

int run_rank(const CommandLine& options, int* argc, char*** argv, bool by_zero) {
  Sentinel sentinel(kLookEvery, [=](const Departure& reason) {
    leave_last_words(reason);
    usleep(kReadingTime);  // mpirun drops output that it reads after its own end has begun
    end_job();
    _exit(by_zero ? exit_found : reason.exit_code);
  });
  // A rank that Open MPI finds alone is from then on the first, whatever its launcher has said.
  const bool is_first = is_first_process();
  const int started = ranks_of_launcher().value_or(1);
  std::optional<Environment> environment;
  std::optional met(meet_all_ranks(sentinel, environment, argc, argv));
  const Communicator& world = met->world;
  if (const std::string fault = why_alone(started, world.size()); !fault.empty()) {
    if (is_first) log_error(fault);
    met.reset();
    environment->finalize();
    return exit_wrong_input;
  }
  if (options.verbose) log_as_rank(world.rank());
  const int code = world.rank() == 0
                       ? run_rank_zero(options, *environment, world, by_zero)
                       : run_worker_rank(*environment, world, met->placement, sentinel);
  const auto end = sentinel.watch(
      deadline("MPI_Finalize", kEndLimit, "a rank died after the run; its results are safe", code));
  met.reset();
  environment->finalize();
  return code;
}

/// The variable that scripts/supervise.sh sets. It says that a process outside mpirun's tree ends
/// mpirun once all of its ranks are gone.
constexpr const char* kSupervisedVariable = "DSTUNE_SUPERVISED";

// When all ranks of an mpirun that survives deaths are killed at once, none is left to end it, and
// it waits for ever.
bool survives_alone() {
  return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr &&
         std::getenv(kSupervisedVariable) == nullptr;
}

// Refuses by MPI_Abort, because such an mpirun returns 0 whatever its ranks return.
int refuse_to_survive_alone(int argc, char** argv) {
  const std::vector<Problem> problems = {
      {"orte_abort_on_non_zero_status",
       concat("is 0, so mpirun may wait forever after its ranks were killed; start it with "
              "scripts/supervise.sh, which ends it then (scripts/tune.sh and the job scripts do), "
              "leave the switch out, or set ",
              kSupervisedVariable, "=1 if you end it yourself")}};
  if (is_first_process()) log_error(ConfigError("mpirun", problems).what());
  const Environment environment(&argc, &argv);
  // Waits until rank 0's MPI_Abort ends the job.
  if (!is_first_process()) MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Abort(MPI_COMM_WORLD, exit_wrong_input);
}

int run_under_mpi(const CommandLine& options, int argc, char** argv) {
  if (is_first_process()) {
    watch_stop_signals();
  } else {
    ignore_stop_signals();
  }
  const bool survives_deaths = Environment::mpirun_survives_deaths();
  if (survives_deaths && survives_alone()) return refuse_to_survive_alone(argc, argv);
  try {
    return run_rank(options, &argc, &argv, survives_deaths);
  } catch (const std::exception& fault) {
    leave_last_words({fault.what(), exit_internal_error});
    // A worker that ends by another code than 0 counts as dead, and rank 0 hears of it.
    _exit(survives_deaths && is_first_process() ? exit_found : exit_internal_error);
  }
}

int run(int argc, char** argv) {
  try {
    const auto options = parse_command_line({argv + 1, argv + argc});
    check_environment();
    if (options.columns) break_log_lines_at(*options.columns);
    if (options.action != CommandLine::Action::tune) {
      return is_first_process() ? run_command(options) : exit_found;
    }
    return run_under_mpi(options, argc, argv);
  } catch (const ConfigError& fault) {
    if (is_first_process()) log_error(fault.what());
    return is_first_process() ? exit_wrong_input : exit_found;
  } catch (const std::exception& fault) {
    log_error(fault.what());
    return exit_internal_error;
  }
}

}  // namespace

int main(int argc, char** argv) {
  secure_standard_streams();
  use_bundled_mpi();
  // A write beyond the file-size limit fails with an Error that names the path.
  signal(SIGXFSZ, SIG_IGN);
  use_exit_code_file();
  const int code = run(argc, argv);
  if (is_first_process()) leave_exit_code(code);
  return code;
}
