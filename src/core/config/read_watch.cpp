#include "core/config/read_watch.hpp"

#include <string>

#include "core/base/text.hpp"

namespace dstune {
namespace {

void read_preflight(const json::value& value, TuningConfig& config, Problems& problems) {
  if (value.is_bool()) {
    config.preflight = value.get_bool() ? Preflight::on : Preflight::off;
  } else if (value.is_string() && value.get_string() == "only") {
    config.preflight = Preflight::only;
  } else {
    problems.add("/dstune/preflight",
                 concat("is ", describe(value), "; accepted: true, false, \"only\""));
  }
}

void read_excluded(const json::value& value, const std::string& where, TuningConfig& config,
                   Problems& problems) {
  if (const auto rank = as_integer(value); rank && *rank >= 0) {
    config.exclude.push_back(concat("rank ", *rank));
  } else if (value.is_string() && !value.get_string().empty()) {
    config.exclude.emplace_back(value.get_string());
  } else {
    problems.add(where, concat("is ", describe(value),
                               "; accepted: a rank (3 or \"rank 3\"), a host, or a device (its id, "
                               "or \"HOST:INDEX\"), or a list of these"));
  }
}

}  // namespace

void read_watch(const SectionReader& reader, TuningConfig& config, Problems& problems) {
  constexpr const char* kExclude = "/dstune/exclude";
  if (const auto* preflight = reader.find("preflight")) {
    read_preflight(*preflight, config, problems);
  }
  const auto* exclude = reader.find("exclude");
  if (exclude == nullptr) return;
  if (!exclude->is_array()) return read_excluded(*exclude, kExclude, config, problems);
  const json::array& list = exclude->get_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    read_excluded(list[i], child(kExclude, i), config, problems);
  }
}

}  // namespace dstune
