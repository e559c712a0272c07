// Signals that ask for an early, orderly end of the run.
#pragma once

namespace dstune {

/// Rank 0: SIGUSR1 (batch systems, before the time limit), SIGTERM, SIGINT and SIGCONT (mpirun's
/// first warning when it is told to end) set a flag; the run ends after what is under way.
void watch_stop_signals();

/// Workers: SIGUSR1, which mpirun forwards to every rank, is none of their business.
void ignore_stop_signals();

/// True once one of the watched signals arrived.
bool stop_requested() noexcept;

}  // namespace dstune
