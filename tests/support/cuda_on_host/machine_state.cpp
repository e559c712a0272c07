#include "tests/support/cuda_on_host/machine_state.hpp"

#include <cstdlib>

#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {

MachineState& state() {
  static MachineState* const instance = [] {
    const Unobserved unobserved;
    std::atexit([] {
      release_hangs();
      join_closed_streams(true);
    });
    return new MachineState;
  }();
  return *instance;
}

int& current_device() {
  static thread_local int device = 0;
  return device;
}

}  // namespace cuda_on_host
