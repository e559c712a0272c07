// MPI from its first to its last call.
#pragma once

namespace dstune {

/// MPI for one process and one thread (MPI_THREAD_FUNNELED). At most one object per process.
///
/// When every rank is alive, all of them end with MPI_Finalize: finalize(), or the destructor. When
/// one died, or leaves by an exception, nobody may: Finalize would wait for it. Then call abandon()
/// (an exception does) and leave by _exit.
class Environment {
 public:
  /// Ranks that wait give way to others, so that more ranks than cores make progress.
  /// @throws MpiError
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Collective over all ranks. @throws MpiError
  void finalize();

  /// The destructor will not finalize.
  void abandon() noexcept { live_ = false; }

  /// True if mpirun goes on when a rank dies (orte_abort_on_non_zero_status is 0: command line,
  /// environment or file). Without MPI_Finalize all ranks then have to leave by 0: otherwise mpirun
  /// may never end. Needs no MPI_Init.
  static bool mpirun_survives_deaths();

 private:
  bool live_ = false;
};

}  // namespace dstune
