#include "core/experiment/outcome/device_use.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

using Value = std::optional<double>;

constexpr std::array<std::pair<std::string_view, Value DeviceUse::*>, 5> kValues = {
    {{"sm_clock_mhz", &DeviceUse::sm_clock_mhz},
     {"max_sm_clock_mhz", &DeviceUse::max_sm_clock_mhz},
     {"temperature_c", &DeviceUse::temperature_c},
     {"power_w", &DeviceUse::power_w},
     {"energy_per_step_j", &DeviceUse::energy_per_step_j}}};

Value larger(Value a, Value b) { return a && b ? std::max(a, b) : a ? a : b; }

Value mean(Value a, Value b) { return a && b ? Value((*a + *b) / 2) : a ? a : b; }

Value sum(Value a, Value b) { return a && b ? Value(*a + *b) : std::nullopt; }

void add_reasons(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const auto& reason : from) {
    if (std::ranges::find(to, reason) == to.end()) to.push_back(reason);
  }
}

/// The reasons that held the device back for more than a moment of `time` between the readings.
std::vector<std::string> reasons_between(const DeviceReading& before, const DeviceReading& after,
                                         Seconds time) {
  constexpr double kLeastShare = 0.01;
  std::vector<std::string> reasons;
  for (const auto& [reason, until] : after.throttle_times) {
    const auto since = before.throttle_times.find(reason);
    if (since == before.throttle_times.end()) continue;
    if (until - since->second > kLeastShare * time) reasons.push_back(reason);
  }
  return reasons;
}

void add(DeviceUse& group, const DeviceUse& rank) {
  const Value share = rank.sm_clock_share();
  if (share && (!group.sm_clock_share() || *share < *group.sm_clock_share())) {
    group.sm_clock_mhz = rank.sm_clock_mhz;
    group.max_sm_clock_mhz = rank.max_sm_clock_mhz;
  }
  group.temperature_c = larger(group.temperature_c, rank.temperature_c);
  group.power_w = sum(group.power_w, rank.power_w);
  group.energy_per_step_j = sum(group.energy_per_step_j, rank.energy_per_step_j);
  add_reasons(group.throttle_reasons, rank.throttle_reasons);
  group.other_processes = std::max(group.other_processes, rank.other_processes);
}

}  // namespace

std::optional<double> DeviceUse::sm_clock_share() const {
  if (!sm_clock_mhz || !max_sm_clock_mhz || *max_sm_clock_mhz <= 0) return std::nullopt;
  return *sm_clock_mhz / *max_sm_clock_mhz;
}

std::optional<DeviceUse> make_device_use(const std::optional<DeviceReading>& before,
                                         const std::optional<DeviceReading>& after, Seconds time,
                                         double steps) {
  if (!before || !after) return std::nullopt;
  DeviceUse use;
  use.sm_clock_mhz = mean(before->sm_clock_mhz, after->sm_clock_mhz);
  use.max_sm_clock_mhz = larger(before->max_sm_clock_mhz, after->max_sm_clock_mhz);
  use.temperature_c = larger(before->temperature_c, after->temperature_c);
  use.power_w = mean(before->power_w, after->power_w);
  if (before->energy_j && after->energy_j && time > 0 && steps > 0) {
    const double energy = *after->energy_j - *before->energy_j;
    use.power_w = energy / time;
    use.energy_per_step_j = energy / steps;
  }
  add_reasons(use.throttle_reasons, before->throttle_reasons);
  add_reasons(use.throttle_reasons, after->throttle_reasons);
  add_reasons(use.throttle_reasons, reasons_between(*before, *after, time));
  use.other_processes =
      std::max(before->other_processes.value_or(0), after->other_processes.value_or(0));
  return use;
}

std::optional<DeviceUse> merge(const std::vector<std::optional<DeviceUse>>& ranks) {
  std::optional<DeviceUse> group;
  for (const auto& rank : ranks) {
    if (!rank) continue;
    if (group) {
      add(*group, *rank);
    } else {
      group = rank;
    }
  }
  const bool are_all = std::ranges::all_of(ranks, [](const auto& rank) { return bool(rank); });
  if (group && !are_all) group->power_w = group->energy_per_step_j = std::nullopt;
  return group;
}

json::object to_json(const DeviceUse& use) {
  json::object object;
  for (const auto& [key, member] : kValues) {
    if (const Value value = use.*member) object[key] = *value;
  }
  object["throttle_reasons"] =
      json::array(use.throttle_reasons.begin(), use.throttle_reasons.end());
  object["other_processes"] = use.other_processes;
  return object;
}

DeviceUse device_use_from_json(const json::object& object) {
  DeviceUse use;
  for (const auto& [key, member] : kValues) {
    const auto* value = object.if_contains(key);
    if (value != nullptr) use.*member = value->to_number<double>();
  }
  for (const auto& reason : object.at("throttle_reasons").as_array()) {
    use.throttle_reasons.emplace_back(reason.as_string());
  }
  use.other_processes = object.at("other_processes").to_number<int>();
  return use;
}

std::string throttle_text(const DeviceUse& use) {
  if (use.throttle_reasons.empty()) return "";
  std::vector<std::string> numbers;
  if (const auto share = use.sm_clock_share()) {
    numbers.push_back(concat("SM clock ", fixed(*use.sm_clock_mhz, 0), " of ",
                             fixed(*use.max_sm_clock_mhz, 0), " MHz (", fixed(100 * *share, 0),
                             " %)"));
  }
  if (use.temperature_c) numbers.push_back(concat(fixed(*use.temperature_c, 0), " C"));
  if (use.power_w) numbers.push_back(concat(fixed(*use.power_w, 0), " W"));
  const std::string reasons = join(use.throttle_reasons, ", ");
  return numbers.empty() ? reasons : concat(reasons, ": ", join(numbers, ", "));
}

}  // namespace dstune
