#include "core/config/read_host_overhead.hpp"

#include <array>
#include <system_error>

#include "core/base/text.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/read_json.hpp"

namespace dstune {

namespace {

using namespace rules;  // NOLINT(google-build-using-namespace): the table reads like a document

constexpr const char* kDefault = "default";
constexpr double kLongest = 1e5;  // a tenth of a second: no Python hook takes that long

constexpr KeyRule microseconds(std::string_view key) {
  return {.key = key, .kind = ValueKind::number, .low = 0, .high = kLongest};
}

// In the order of HostEvent.
constexpr std::array<KeyRule, kHostEvents> kEventRules = {
    microseconds("gradient_hook_us"), microseconds("module_hook_us"), microseconds("collective_us"),
    microseconds("optimizer_tensor_us"), microseconds("synchronization_us")};

constexpr KeyRule kProfileRules[] = {
    kEventRules[0], kEventRules[1], kEventRules[2], kEventRules[3], kEventRules[4], any("about"),
};
constexpr Section kProfile{.rules = kProfileRules};

std::filesystem::path find_file(const std::string& name,
                                const std::vector<std::filesystem::path>& folders) {
  std::error_code ignored;
  for (const auto& folder : folders) {
    auto path = folder / name;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

HostOverhead read_profile(const json::object& object, Problems& problems) {
  const json::object checked = check_section(object, kProfile, "", problems);
  HostOverhead overhead;
  for (std::size_t i = 0; i < kHostEvents; ++i) {
    const std::string_view key = kEventRules[i].key;
    if (const auto* value = checked.if_contains(key)) {
      overhead.seconds[i] = value->to_number<double>() * 1e-6;
    } else if (!object.contains(key)) {
      problems.add(child("", key), "is missing; accepted: a number of microseconds >= 0");
    }
  }
  return overhead;
}

std::string no_such_profile(const std::string& name) {
  std::vector<std::string> names = host_overhead_presets();
  names.insert(names.begin(), kDefault);
  const auto near = suggestion(name, {names.begin(), names.end()});
  return concat("is ", in_quotes(name), ", no preset and no file", near,
                near.empty() ? "; accepted: \"" : " accepted: \"", join(names, "\", \""),
                "\", or the path of a profile");
}

}  // namespace

std::optional<HostOverhead> read_host_overhead(const std::string& name,
                                               const std::vector<std::filesystem::path>& folders,
                                               std::string_view where, Problems& problems) {
  if (name == kDefault) return std::nullopt;
  if (const auto preset = host_overhead_preset(name)) return preset;
  const auto path = find_file(name, folders);
  if (path.empty()) {
    problems.add(std::string(where), no_such_profile(name));
    return std::nullopt;
  }
  Problems in_file(path.string());
  const auto value = read_json_file(path, "", in_file);
  HostOverhead overhead;
  if (value && !value->is_object()) {
    in_file.add("file", concat("is ", describe(*value), "; accepted: an object"));
  } else if (value) {
    overhead = read_profile(value->get_object(), in_file);
  }
  problems.add_all(in_file);
  if (!in_file.empty()) return std::nullopt;
  return overhead;
}

}  // namespace dstune
