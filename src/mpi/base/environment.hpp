// The life of MPI in a process, from its first to its last call.
#pragma once

namespace dstune {

/// Starts and ends MPI for one process and one thread (MPI_THREAD_FUNNELED). There is at most one
/// object per process.
///
/// When every rank is alive, all of them end with MPI_Finalize: finalize(), or the destructor. When
/// one died, or leaves by an exception, no rank may call MPI_Finalize, which would wait for it.
/// Then call abandon() (unwinding by an exception has the same effect) and leave by _exit.
class Environment {
 public:
  /// Makes ranks that wait yield their core to others, so that more ranks than cores make progress.
  /// @throws MpiError
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Collective over all ranks. @throws MpiError
  void finalize();

  /// From now on the destructor does not finalize.
  void abandon() noexcept { live_ = false; }

  /// True if mpirun goes on when a rank dies (orte_abort_on_non_zero_status is 0: command line,
  /// environment or file). Ranks that leave such an mpirun without MPI_Finalize must leave by 0,
  /// because it may never end otherwise. False with any other library than Open MPI. Needs no
  /// MPI_Init.
  static bool mpirun_survives_deaths();

 private:
  bool live_ = false;
};

}  // namespace dstune
