// MPI from its first to its last call.
#pragma once

namespace dstune {

/// MPI for one process and one thread (MPI_THREAD_FUNNELED). At most one object per process.
///
/// When every rank is alive, all of them end with MPI_Finalize: finalize(), or the destructor. When
/// one died, nobody may: Finalize would wait for it. Then call abandon() and leave by _exit.
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

 private:
  bool live_ = false;
};

}  // namespace dstune
