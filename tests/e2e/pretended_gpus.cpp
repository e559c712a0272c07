// GPUs of CUDA on the host for a program: as many as PRETENDED_GPUS of the environment says.
#include <cstdlib>

#include "tests/support/cuda_on_host/control.hpp"

namespace {

[[maybe_unused]] const bool kSetUp = [] {
  const char* devices = std::getenv("PRETENDED_GPUS");
  cuda_on_host::set_up(
      {.devices = devices == nullptr ? 1 : std::atoi(devices), .bytes = std::size_t{4} << 30U});
  return true;
}();

}  // namespace
