#include "core/config/host/read_host_overhead.hpp"

#include <system_error>

#include "core/base/text.hpp"
#include "core/config/host/host_profile.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

constexpr const char* kDefault = "default";

std::filesystem::path find_file(const std::string& name,
                                const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    auto path = folder / name;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

std::string no_such_profile(const std::string& name) {
  std::vector<std::string> names = host_overhead_presets();
  names.insert(names.begin(), kDefault);
  const auto near = suggestion(name, {names.begin(), names.end()});
  return concat("is ", in_quotes(name), ", neither a preset nor a file", near,
                near.empty() ? "; accepted: \"" : " accepted: \"", join(names, "\", \""),
                "\", or the path of a profile");
}

}  // namespace

std::optional<HostOverhead> read_host_overhead(const std::string& name,
                                               const std::vector<std::filesystem::path>& folders,
                                               std::string_view where, Problems& problems) {
  if (name == kDefault) return std::nullopt;
  if (auto preset = host_overhead_preset(name)) return preset;
  const auto path = find_file(name, folders);
  if (path.empty()) {
    problems.add(std::string(where), no_such_profile(name));
    return std::nullopt;
  }
  Problems in_file(path.string());
  const auto profile = read_host_profile(path, in_file);
  problems.add_all(in_file);
  if (!profile) return std::nullopt;
  return profile->overhead;
}

}  // namespace dstune
