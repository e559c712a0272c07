#include "tests/support/cuda_on_host/compiled_code.hpp"

#include <charconv>
#include <string>
#include <system_error>

#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

/// One of them: "90", "90a-real", "100f", "80-virtual".
bool runs_on(std::string_view architecture, int major, int minor) {
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [rest, error] = std::from_chars(architecture.data(), end, number);
  const std::string_view kind(rest, static_cast<std::size_t>(end - rest));
  const bool is_own = kind.starts_with("a");
  const bool is_of_family = kind.starts_with("f");
  const std::string_view form = kind.substr(is_own || is_of_family ? 1 : 0);
  if (error != std::errc{} || (form != "" && form != "-real" && form != "-virtual")) {
    misuse("no architecture of CMake: " + std::string(architecture));
  }
  const int capability = major * 10 + minor;
  if (is_own) return capability == number;
  const bool is_relative = major == number / 10 && minor >= number % 10;
  if (is_of_family) return is_relative;
  const bool by_code = form != "-virtual" && is_relative;
  const bool by_ptx = form != "-real" && capability >= number;
  return by_code || by_ptx;
}

}  // namespace

bool has_code_for(std::string_view architectures, int major, int minor) {
  while (!architectures.empty()) {
    const std::size_t end = architectures.find(';');
    if (runs_on(architectures.substr(0, end), major, minor)) return true;
    architectures = end == std::string_view::npos ? "" : architectures.substr(end + 1);
  }
  return false;
}

cudaError_t find_code() {
  const Locked locked;
  return state().has_code ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}

}  // namespace cuda_on_host
