// Memory of devices that the host's code cannot touch, behind one of the processor's protection
// keys: what is forgotten to be copied is a fault here, as with a GPU.
#pragma once

#include <cstddef>

namespace cuda_on_host {

/// Whether new memory of devices is guarded, as guard_memory() said or the environment.
bool guards_memory();

/// Whole pages, guarded. @returns nullptr if the host has none
void* take_guarded(std::size_t bytes);
void give_back_guarded(void* memory, std::size_t bytes) noexcept;

/// Lets kernels read and write pages that are mapped, and guards them if memory is to be.
/// @returns whether it could
bool open_pages(void* begin, std::size_t bytes);

enum class Side { device, host };

/// While one lives, this thread runs what a device does, which may touch guarded memory, or what
/// the host does, which may not, as every thread may not at first.
class RunsAs {
 public:
  explicit RunsAs(Side side);
  ~RunsAs();
  RunsAs(const RunsAs&) = delete;
  RunsAs& operator=(const RunsAs&) = delete;

 private:
  int key_;
  int before_ = 0;
};

}  // namespace cuda_on_host
