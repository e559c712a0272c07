// A shared library with the functions of NVML that are used; numbers tell who asked for what.
#include "tests/kernels/cuda/measurement/fake_nvml.hpp"

#include <string_view>

namespace {

constexpr int kFault = 999;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;

dstune::test::FakeNvml state;
int the_device;

template <class Number>
int answer(const void* device, Number value, Number* out) {
  if (state.fails || device != &the_device) return kFault;
  *out = value;
  return 0;
}

struct Process {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

struct ViolationTime {
  unsigned long long reference;
  unsigned long long violation;
};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names
extern "C" {

dstune::test::FakeNvml* fake_nvml() { return &state; }

int nvmlInit_v2() {
  ++state.set_up_calls;
  return state.fails_to_set_up ? kFault : 0;
}

int nvmlShutdown() {
  ++state.shut_down_calls;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (std::string_view(id) != "0000:3b:00.0") return kNotFound;
  *device = &the_device;
  return 0;
}

int nvmlDeviceGetClockInfo(void* device, int kind, unsigned int* mhz) {
  return answer(device, 1400U + static_cast<unsigned int>(kind), mhz);
}

int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned int* mhz) {
  return answer(device, 1980U + static_cast<unsigned int>(kind), mhz);
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned int* celsius) {
  return answer(device, 83U + static_cast<unsigned int>(sensor), celsius);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  return answer(device, 612'500U, milliwatts);
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  return answer(device, 5'000'000'000'500ULL, millijoules);
}

int DSTUNE_REASONS_FUNCTION(void* device, unsigned long long* reasons) {
  return answer(device, state.reasons, reasons);
}

int nvmlDeviceGetViolationStatus(void* device, int policy, ViolationTime* time) {
  constexpr int kThermal = 1;
  constexpr int kSyncBoost = 2;
  constexpr int kNotSupported = 3;
  if (policy == kSyncBoost) return kNotSupported;
  return answer(device, ViolationTime{1, policy == kThermal ? state.heat_ns : 0}, time);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count, Process* out) {
  if (state.fails || device != &the_device) return kFault;
  const unsigned int room = *count;
  *count = state.processes;
  if (room < state.processes) return kInsufficientSize;
  for (unsigned int i = 0; i < state.processes; ++i) out[i] = {100 + i, 1U << 20U, ~0U, ~0U};
  return 0;
}
}
// NOLINTEND(readability-identifier-naming)
