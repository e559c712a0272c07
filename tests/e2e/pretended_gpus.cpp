// GPUs of CUDA on the host for a program: as many as PRETENDED_GPUS of the environment says, each
// with PRETENDED_GPU_MIB of memory.
#include <cstdlib>

#include "tests/support/cuda_on_host/control.hpp"

namespace {

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

[[maybe_unused]] const bool kSetUp = [] {
  const auto mebibytes = static_cast<std::size_t>(number_in("PRETENDED_GPU_MIB", 4096));
  cuda_on_host::set_up({.devices = number_in("PRETENDED_GPUS", 1), .bytes = mebibytes << 20U});
  return true;
}();

}  // namespace
