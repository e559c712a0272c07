#include "kernels/cuda/measurement/nvml.hpp"

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "core/base/unique_handle.hpp"

namespace dstune::cuda {
namespace {

// What is used of nvml.h, which comes with the toolkit but not with every installation of it.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;

struct ProcessInfo {  // nvmlProcessInfo_v2_t, which the _v3 function fills
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id;
  unsigned int compute_instance_id;
};

struct ViolationTime {  // nvmlViolationTime_t
  unsigned long long reference_time;
  unsigned long long violation_time;  // ns
};

using SetUp = int();
using FindDevice = int(const char*, NvmlDevice*);
using ReadKind = int(NvmlDevice, int, unsigned int*);
using ReadNumber = int(NvmlDevice, unsigned int*);
using ReadLarge = int(NvmlDevice, unsigned long long*);
using ReadViolation = int(NvmlDevice, int, ViolationTime*);
using ListProcesses = int(NvmlDevice, unsigned int*, ProcessInfo*);

// An idle GPU, clocks that somebody has set and a display's are no throttling.
constexpr std::array<std::pair<unsigned long long, const char*>, 6> kThrottleReasons = {
    {{0x04, "power cap"},
     {0x08, "hardware slowdown"},
     {0x10, "sync boost with another GPU"},
     {0x20, "heat (software)"},
     {0x40, "heat (hardware)"},
     {0x80, "power brake"}}};

// nvmlPerfPolicyType_t, but for low utilisation.
constexpr std::array<std::pair<int, const char*>, 5> kPolicies = {
    {{0, "power cap"},
     {1, "heat"},
     {2, "sync boost with another GPU"},
     {3, "board limit"},
     {5, "reliability limit"}}};

struct SharedLibrary {
  using Handle = void*;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle handle) noexcept { dlclose(handle); }
};

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

template <class Number>
std::optional<double> scaled(double factor, int (*read)(NvmlDevice, Number*), NvmlDevice device) {
  Number value = 0;
  if (read == nullptr || read(device, &value) != kSuccess) return std::nullopt;
  return factor * static_cast<double>(value);
}

std::optional<double> value_of(ReadKind* read, NvmlDevice device, int kind) {
  unsigned int value = 0;
  if (read == nullptr || read(device, kind, &value) != kSuccess) return std::nullopt;
  return value;
}

std::vector<std::string> throttle_reasons(ReadLarge* read, NvmlDevice device) {
  unsigned long long bits = 0;
  if (read == nullptr || read(device, &bits) != kSuccess) return {};
  std::vector<std::string> words;
  for (const auto& [bit, word] : kThrottleReasons) {
    if ((bits & bit) != 0) words.emplace_back(word);
  }
  return words;
}

std::map<std::string, double> throttle_times(ReadViolation* read, NvmlDevice device) {
  std::map<std::string, double> times;
  if (read == nullptr) return times;
  for (const auto& [policy, word] : kPolicies) {
    ViolationTime time{};
    if (read(device, policy, &time) != kSuccess) continue;
    times[word] = 1e-9 * static_cast<double>(time.violation_time);
  }
  return times;
}

std::optional<int> other_processes(ListProcesses* list, NvmlDevice device) {
  if (list == nullptr) return std::nullopt;
  std::vector<ProcessInfo> processes(16);
  auto count = static_cast<unsigned int>(processes.size());
  int status = list(device, &count, processes.data());
  if (status == kInsufficientSize) {
    processes.resize(std::size_t{count} + 16);  // some may have begun meanwhile
    count = static_cast<unsigned int>(processes.size());
    status = list(device, &count, processes.data());
  }
  if (status != kSuccess) return std::nullopt;
  return count == 0 ? 0 : static_cast<int>(count) - 1;
}

}  // namespace

struct GpuMonitor::Library {
  explicit Library(void* handle)
      : shared(handle),
        set_up(find<SetUp>(handle, "nvmlInit_v2")),
        shut_down(find<SetUp>(handle, "nvmlShutdown")),
        find_device(find<FindDevice>(handle, "nvmlDeviceGetHandleByPciBusId_v2")),
        clock(find<ReadKind>(handle, "nvmlDeviceGetClockInfo")),
        max_clock(find<ReadKind>(handle, "nvmlDeviceGetMaxClockInfo")),
        temperature(find<ReadKind>(handle, "nvmlDeviceGetTemperature")),
        power(find<ReadNumber>(handle, "nvmlDeviceGetPowerUsage")),
        energy(find<ReadLarge>(handle, "nvmlDeviceGetTotalEnergyConsumption")),
        reasons(find<ReadLarge>(handle, "nvmlDeviceGetCurrentClocksEventReasons")),
        violation(find<ReadViolation>(handle, "nvmlDeviceGetViolationStatus")),
        processes(find<ListProcesses>(handle, "nvmlDeviceGetComputeRunningProcesses_v3")) {
    if (reasons == nullptr) {  // its name before driver 535
      reasons = find<ReadLarge>(handle, "nvmlDeviceGetCurrentClocksThrottleReasons");
    }
    is_set_up = set_up != nullptr && find_device != nullptr && set_up() == kSuccess;
  }
  ~Library() {
    if (is_set_up && shut_down != nullptr) shut_down();
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  UniqueHandle<SharedLibrary> shared;
  SetUp* set_up;
  SetUp* shut_down;
  FindDevice* find_device;
  ReadKind* clock;
  ReadKind* max_clock;
  ReadKind* temperature;
  ReadNumber* power;
  ReadLarge* energy;
  ReadLarge* reasons;
  ReadViolation* violation;
  ListProcesses* processes;
  bool is_set_up = false;
};

GpuMonitor::GpuMonitor(std::unique_ptr<Library> library, void* device, bool is_mig_instance)
    : library_(std::move(library)), device_(device), is_mig_instance_(is_mig_instance) {}

GpuMonitor::~GpuMonitor() = default;

std::unique_ptr<GpuMonitor> GpuMonitor::open(const std::string& pci_bus_id, bool is_mig_instance,
                                             const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto nvml = std::make_unique<Library>(handle);
  NvmlDevice device = nullptr;
  if (!nvml->is_set_up || nvml->find_device(pci_bus_id.c_str(), &device) != kSuccess) {
    return nullptr;
  }
  return std::unique_ptr<GpuMonitor>(new GpuMonitor(std::move(nvml), device, is_mig_instance));
}

DeviceReading GpuMonitor::read() const {
  const Library& nvml = *library_;
  DeviceReading reading;
  reading.sm_clock_mhz = value_of(nvml.clock, device_, kSmClock);
  reading.max_sm_clock_mhz = value_of(nvml.max_clock, device_, kSmClock);
  reading.memory_clock_mhz = value_of(nvml.clock, device_, kMemoryClock);
  reading.temperature_c = value_of(nvml.temperature, device_, kGpuTemperature);
  reading.throttle_reasons = throttle_reasons(nvml.reasons, device_);
  reading.throttle_times = throttle_times(nvml.violation, device_);
  if (is_mig_instance_) return reading;
  reading.power_w = scaled(1e-3, nvml.power, device_);
  reading.energy_j = scaled(1e-3, nvml.energy, device_);
  reading.other_processes = other_processes(nvml.processes, device_);
  return reading;
}

}  // namespace dstune::cuda
