// Signals that ask for an early, orderly end of the run, and those that are its disorderly end.
#pragma once

namespace dstune {

/// Rank 0: SIGUSR1 and SIGUSR2 (batch systems, before the time limit), SIGTERM, SIGINT and SIGHUP
/// set a flag; the run ends after what is under way. SIGCONT is none of them: it comes after every
/// pause.
void watch_stop_signals();

/// Workers: mpirun passes these signals to every rank, but the end of the run is rank 0's business.
void ignore_stop_signals();

/// True once one of the watched signals arrived.
bool stop_requested() noexcept;

/// Rank 0: a crash (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) leaves `exit_code` in the exit code
/// file. Then the process ends by that signal, or, with `quietly`, by _exit(0): an mpirun that
/// survives dead workers hangs for ever if rank 0 dies by a signal. To be called after MPI_Init,
/// which has handlers of its own for these signals.
void watch_crashes(int exit_code, bool quietly);

}  // namespace dstune
