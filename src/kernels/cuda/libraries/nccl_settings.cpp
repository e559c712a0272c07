#include "kernels/cuda/libraries/nccl_settings.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/base/printable.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

bool is_common(std::string_view name) {
  return name.starts_with("NCCL_") && !name.starts_with("NCCL_DEBUG") && name != "NCCL_HOSTID";
}

}  // namespace

std::vector<CommonSetting> nccl_settings() {
  std::vector<CommonSetting> settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const std::string_view name = line.substr(0, line.find('='));
    if (name.size() == line.size() || !is_common(name)) continue;
    // JSON has no other bytes than those of UTF-8.
    settings.push_back({printable(name), printable(line.substr(name.size() + 1))});
  }
  std::sort(settings.begin(), settings.end(),
            [](const auto& one, const auto& other) { return one.name < other.name; });
  int version = 0;
  if (nccl_library().problem.empty() && nccl().GetVersion(&version) == ncclSuccess) {
    settings.insert(settings.begin(),
                    {"NCCL", version_text(static_cast<std::size_t>(version)), true});
  }
  return settings;
}

}  // namespace dstune::cuda
