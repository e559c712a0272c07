// The checks of a Sentinel, this process's watchdog: clocks and processes, as seen from inside a
// job of mpirun.
#pragma once

#include <string>

#include "mpi/lifeline/sentinel.hpp"

namespace dstune {

/// Ends the process when `limit` seconds have passed. Time in which the process was stopped
/// (SIGSTOP, a debugger) does not count.
/// @param phase  what should have been over by then: "MPI_Init"
Check deadline(const std::string& phase, Seconds limit, const std::string& advice, int exit_code);

/// Ends the process when its present parent is gone: mpirun, or Open MPI's daemon on another host,
/// was killed.
Check launcher_gone(int exit_code);

/// Ends the process when process `pid` of this host has vanished.
Check process_gone(int pid, const std::string& name, int exit_code);

/// Ends the process when another rank that mpirun started on this host was seen and has vanished,
/// or when some were not seen within a few seconds: inside MPI_Init nothing else reports that.
/// Under other launchers it sees no ranks and never ends the process.
Check rank_of_this_host_gone(int exit_code);

/// Asks mpirun to end the job if mpirun runs on this host. It then kills ranks that do not answer.
void end_job();

}  // namespace dstune
