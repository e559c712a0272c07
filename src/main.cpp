// dstune-mpi: rank 0 tunes, all other ranks run experiments.

#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <boost/version.hpp>
#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/command_line.hpp"
#include "explain_command.hpp"
#include "kernels/backend.hpp"
#include "mpi/communicator.hpp"
#include "mpi/environment.hpp"
#include "mpi/signals.hpp"
#include "plan_command.hpp"
#include "tuner_rank.hpp"
#include "worker_rank.hpp"

namespace {

using namespace dstune;

// What can be said without MPI is said by one process, however many were started.
bool is_first_process() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const char* rank = std::getenv(variable)) return std::string(rank) == "0";
  }
  return true;
}

void log_as_rank(int rank) {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  enable_debug_log(concat("[rank ", rank, " ", host, "]"));
}

int run_under_mpi(int argc, char** argv, const CommandLine& options) {
  Environment environment(&argc, &argv);
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  if (options.verbose) log_as_rank(world.rank());
  if (world.rank() != 0) {
    ignore_stop_signals();
    return run_worker_rank(environment, world);
  }
  const auto result = run_tuner_rank(options, world);
  if (!result.all_alive) {
    environment.abandon();
    _exit(result.exit_code);  // MPI_Finalize would wait for the dead
  }
  return result.exit_code;
}

void print_version() {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(mpi, &length);  // one of the few calls that need no MPI_Init
  std::cout << trim(version_text()) << "\n" << trim(mpi) << "\nBoost " << BOOST_LIB_VERSION << "\n";
  for (const auto& line : describe_backends()) std::cout << line << "\n";
}

int run_without_mpi(const CommandLine& options) {
  if (!is_first_process()) return exit_found;
  if (options.action == CommandLine::Action::help) {
    std::cout << help_text();
  } else if (options.action == CommandLine::Action::version) {
    print_version();
  } else if (options.explain) {
    print_explanation(options);
  } else {
    print_plan(options);
  }
  return exit_found;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit becomes an Error with a path
  try {
    const auto options = parse_command_line({argv + 1, argv + argc});
    if (options.action != CommandLine::Action::tune) return run_without_mpi(options);
    return run_under_mpi(argc, argv, options);
  } catch (const ConfigError& fault) {
    if (is_first_process()) log_error(fault.what());
    return is_first_process() ? exit_wrong_input : exit_found;
  } catch (const std::exception& fault) {
    log_error(fault.what());
    // The other ranks may wait for this one: only MPI_Abort ends them all.
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized != 0 && finalized == 0) MPI_Abort(MPI_COMM_WORLD, exit_internal_error);
    return exit_internal_error;
  }
}
