#include "tests/support/cuda_on_host/architecture.hpp"

#include <algorithm>
#include <iterator>

#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

constexpr std::size_t kKiB = 1024;

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
constexpr Architecture kArchitectures[] = {
    {60, 48 * kKiB, 64 * kKiB, 2048, 32},    {70, 96 * kKiB, 96 * kKiB, 2048, 32},
    {75, 64 * kKiB, 64 * kKiB, 1024, 16},    {80, 163 * kKiB, 164 * kKiB, 2048, 32},
    {86, 99 * kKiB, 100 * kKiB, 1536, 16},   {87, 163 * kKiB, 164 * kKiB, 1536, 16},
    {89, 99 * kKiB, 100 * kKiB, 1536, 24},   {90, 227 * kKiB, 228 * kKiB, 2048, 32},
    {110, 227 * kKiB, 228 * kKiB, 1536, 24}, {120, 99 * kKiB, 100 * kKiB, 1536, 24},
};

}  // namespace

const Architecture& architecture_of(int major, int minor) {
  const auto next = std::upper_bound(
      std::begin(kArchitectures), std::end(kArchitectures), major * 10 + minor,
      [](int capability, const Architecture& there) { return capability < there.capability; });
  return next == std::begin(kArchitectures) ? *next : *std::prev(next);
}

const Architecture& architecture_here() {
  const Locked locked;
  return architecture_of(state().machine.major, state().machine.minor);
}

}  // namespace cuda_on_host
