// The state of a GPU as NVIDIA's management library (NVML) of the driver tells it.
#pragma once

#include <memory>
#include <string>

#include "core/device/device_reading.hpp"

namespace dstune::cuda {

/// One GPU. NVML is found at run time: where it or one of its functions is missing, the GPU merely
/// says less.
class GpuMonitor {
 public:
  /// @param pci_bus_id  "0000:3b:00.0", as cudaDeviceGetPCIBusId writes it
  /// @param is_mig_instance  this process has a part of it alone
  /// @param library     searched as dlopen does
  /// @returns nullptr where there is no such library, no driver, or no such GPU
  static std::unique_ptr<GpuMonitor> open(const std::string& pci_bus_id, bool is_mig_instance,
                                          const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  /// Takes a few milliseconds at most; never throws for what NVML does not say.
  ///
  /// other_processes leaves one out, the calling process, which is taken to use the GPU: in another
  /// PID namespace NVML may list it by another number. Of a MIG instance power, energy and
  /// processes are left out, which NVML counts for the whole GPU.
  DeviceReading read() const;

 private:
  struct Library;
  GpuMonitor(std::unique_ptr<Library> library, void* device, bool is_mig_instance);

  std::unique_ptr<Library> library_;
  void* device_;
  bool is_mig_instance_;
};

}  // namespace dstune::cuda
