// include/device_language/qualifiers.h has the compiler put one NOP for each warp before a kernel,
// and note the first one's address in a section, which is read here.
#include "tests/support/cuda_on_host/launch_bounds.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/cuda_on_host/observation.hpp"
#include "tests/support/cuda_on_host/thread_set.hpp"
#include "tests/support/cuda_on_host/warp_meetings.hpp"

// The linker's, and null in a program whose kernels have no bounds.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const std::uintptr_t
    __start___patchable_function_entries[];  // NOLINT(bugprone-reserved-identifier)
[[gnu::weak, gnu::visibility("hidden")]] extern const std::uintptr_t
    __stop___patchable_function_entries[];  // NOLINT(bugprone-reserved-identifier)
}

namespace cuda_on_host {
namespace {

using Places = std::vector<std::uintptr_t>;

const Places& first_nops() {
  static const auto& sorted = *[] {
    auto* const places =
        new Places(__start___patchable_function_entries, __stop___patchable_function_entries);
    std::sort(places->begin(), places->end());
    return places;
  }();
  return sorted;
}

}  // namespace

unsigned launch_bound_of(const void* kernel) {
  const Unobserved unobserved;
  const auto entry = reinterpret_cast<std::uintptr_t>(kernel);
  const auto next = std::lower_bound(first_nops().begin(), first_nops().end(), entry);
  if (next == first_nops().begin()) return kMaxThreads;
  const std::uintptr_t warps = entry - *std::prev(next);
  constexpr unsigned char kNop = 0x90;
  const auto* const code = static_cast<const unsigned char*>(kernel);
  const bool is_of_kernel =
      warps <= kMaxThreads / kLanes &&
      std::all_of(code - warps, code, [](unsigned char byte) { return byte == kNop; });
  return is_of_kernel ? static_cast<unsigned>(warps) * kLanes : kMaxThreads;
}

}  // namespace cuda_on_host
