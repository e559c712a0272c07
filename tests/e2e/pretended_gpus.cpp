// GPUs of CUDA on the host for a program, as variables of the environment say:
//   PRETENDED_GPUS             how many
//   PRETENDED_GPU_MIB          memory of each
//   PRETENDED_GPU_NAME         what the driver calls each
//   PRETENDED_GPU_CAPABILITY   compute capability of each, ten times: 70
//   PRETENDED_DRIVER           the version of CUDA that the driver is for: 12040
#include <cstdlib>

#include "tests/support/cuda_on_host/control.hpp"

namespace {

int number_in(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

[[maybe_unused]] const bool kSetUp = [] {
  cuda_on_host::Machine machine;
  machine.devices = number_in("PRETENDED_GPUS", machine.devices);
  machine.bytes = static_cast<std::size_t>(number_in("PRETENDED_GPU_MIB", 4096)) << 20U;
  const int capability = number_in("PRETENDED_GPU_CAPABILITY", 90);
  machine.major = capability / 10;
  machine.minor = capability % 10;
  machine.driver_version = number_in("PRETENDED_DRIVER", machine.driver_version);
  if (const char* name = std::getenv("PRETENDED_GPU_NAME")) machine.name = name;
  cuda_on_host::set_up(machine);
  return true;
}();

}  // namespace
