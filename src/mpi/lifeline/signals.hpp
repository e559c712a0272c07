// Signals that ask for an early, orderly end of the run, and signals of a crash.
#pragma once

namespace dstune {

/// For rank 0: SIGUSR1 and SIGUSR2 (which batch systems send before the time limit), SIGTERM,
/// SIGINT and SIGHUP set a flag, and the run ends after the experiments that are under way. SIGCONT
/// is not watched, because it comes after every pause.
void watch_stop_signals();

/// For workers: mpirun passes the signals above to every rank, but rank 0 alone ends the run.
void ignore_stop_signals();

/// True once one of the watched signals arrived.
bool stop_requested() noexcept;

/// For rank 0: a crash (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL) leaves `exit_code` in the exit
/// code file. Then the process ends by that signal, or by _exit(0) with `quietly`: an mpirun that
/// survives dead workers hangs for ever if rank 0 dies by a signal. Call it after MPI_Init, which
/// installs handlers of its own for these signals.
void watch_crashes(int exit_code, bool quietly);

}  // namespace dstune
