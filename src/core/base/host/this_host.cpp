#include "core/base/host/this_host.hpp"

#include <array>
#include <cstddef>

#include <unistd.h>

namespace dstune {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string process_space() {
  std::array<char, 128> link{};
  const auto length = ::readlink("/proc/self/ns/pid", link.data(), link.size());
  return length > 0 ? std::string(link.data(), static_cast<std::size_t>(length)) : "";
}

}  // namespace dstune
