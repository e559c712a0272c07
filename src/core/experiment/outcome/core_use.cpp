#include "core/experiment/outcome/core_use.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace dstune {

double core_share(const CoreUse& use) {
  return use.wanted > 0 ? std::clamp(use.had / use.wanted, 0.0, 1.0) : 1;
}

json::array to_json(const std::vector<CoreUse>& ranks) {
  json::array array;
  for (const CoreUse& use : ranks) {
    array.push_back({{"wanted_s", use.wanted},
                     {"had_s", use.had},
                     {"probe_per_s", use.probe_per_s},
                     {"probe", use.probe},
                     {"page_faults", use.page_faults}});
  }
  return array;
}

std::vector<CoreUse> core_uses_from_json(const json::array& array) {
  std::vector<CoreUse> ranks;
  for (const json::value& value : array) {
    const json::object& use = value.as_object();
    const auto* faults = use.if_contains("page_faults");  // journals of earlier releases have none
    ranks.push_back({use.at("wanted_s").to_number<double>(), use.at("had_s").to_number<double>(),
                     use.at("probe_per_s").to_number<double>(), text_at(use, "probe"),
                     faults == nullptr ? 0 : faults->to_number<std::int64_t>()});
  }
  return ranks;
}

}  // namespace dstune
