// The backends by name, and the facts about each that are known without asking it.
#pragma once

#include "core/base/listed.hpp"
#include "core/base/units.hpp"
#include "core/device/host_overhead.hpp"
#include "core/device/memory/caching_model.hpp"

namespace dstune {

/// X(name, facts...) for each backend. A new backend is a folder of src/kernels with
/// describe_device() and make_backend() in the namespace of its name (kernels/backends.cpp), and a
/// line here; the facts are members of BackendTraits.
// clang-format off
#define DSTUNE_BACKENDS(X)                                                                     \
  X(cpu, .place = 1, .host_overhead = kGlooOverhead, .communication = "gloo",                  \
    .computes_on_host = true, .only_stores_16_bits = true,                                     \
    .rates = {.overlaps = false, .flops_per_s = 0, .flops_per_s_per_thread = 30e9,             \
              .copy_bytes_per_s = 8e9, .launch = 1e-6,                                         \
              .collective_latency = 20e-6, .collective_bytes_per_s = 1.5e9})                   \
  X(cuda, .place = 0, .is_dear = true, .allocator = AllocatorModel::caching,                   \
    .plans_new_shapes = true, .settles_in = 1)                                                 \
  X(sim, .place = 2, .time_is_virtual = true,                                                  \
    .rates = {.flops_per_s = 10e12, .copy_bytes_per_s = 1e12, .launch = 5e-6,                  \
              .collective_latency = 5e-6, .collective_bytes_per_s = 25e9})
// clang-format on

/// Estimates of how fast a machine is where nobody has measured it: orders of magnitude.
struct EstimatedRates {
  bool overlaps = true;  ///< MachineRates::overlaps
  double flops_per_s = 300e12;
  double flops_per_s_per_thread = 0;  ///< is added for each thread
  double copy_bytes_per_s = 2.5e12;
  Seconds launch = 4e-6;
  Seconds collective_latency = 8e-6;
  double collective_bytes_per_s = 150e9;
};

/// The facts about a backend. The defaults are those of an accelerator of which nothing is known.
struct BackendTraits {
  std::string_view name = {};
  int place = 0;         ///< for `auto`, which takes the lowest that can be used
  bool is_dear = false;  ///< making it takes a part of the hardware
  std::string_view host_overhead = kCudaOverhead;  ///< DeviceInfo::host_overhead
  std::string_view communication = {};  ///< library of torch.distributed that stands for it
  /// The device computes on cores of the host: what the host does beside it always takes its time.
  bool computes_on_host = false;
  bool only_stores_16_bits = false;                  ///< it computes bf16 and fp16 in fp32
  AllocatorModel allocator = AllocatorModel::exact;  ///< PyTorch's allocator for such memory
  /// Times are computed, the same on every machine.
  bool time_is_virtual = false;
  bool plans_new_shapes = false;  ///< its libraries make plans for every shape at its first use
  /// Seconds of load until clocks and heat have settled. A measurement is of as many, at least.
  Seconds settles_in = 0;
  EstimatedRates rates = {};
};

inline constexpr BackendTraits kBackends[] = {DSTUNE_BACKENDS(DSTUNE_LISTED_ROW)};

/// "auto" and every name.
inline constexpr const char* kBackendChoices = "auto" DSTUNE_BACKENDS(DSTUNE_LISTED_CHOICE);

/// The traits of this backend; the defaults where no backend has the name.
constexpr BackendTraits traits_of_backend(std::string_view name) {
  const BackendTraits* listed = find_row(kBackends, name);
  if (listed != nullptr) return *listed;
  return {.name = name};
}

}  // namespace dstune
