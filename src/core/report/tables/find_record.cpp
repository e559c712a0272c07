#include "core/report/tables/find_record.hpp"

#include <algorithm>
#include <cstddef>
#include <variant>

#include "core/base/text.hpp"
#include "core/report/tables/ranked.hpp"
#include "core/report/tables/summary.hpp"

namespace dstune {
namespace {

bool has_letters_of(const std::string& name, const std::string& candidate) {
  std::size_t next = 0;
  for (const char letter : candidate) next += next < name.size() && name[next] == letter ? 1 : 0;
  return next == name.size();
}

}  // namespace

const Record* find_record(const std::vector<Record>& records, const std::string& name) {
  const auto found = std::find_if(records.rbegin(), records.rend(), [&](const Record& record) {
    return record.experiment.name == name;
  });
  return found == records.rend() ? nullptr : &*found;
}

std::optional<Record> find_best(const std::vector<Record>& records, const std::string& chosen,
                                Metric metric) {
  const auto by_rank = ranked(tuning_records(records), metric);
  const Record* best = find_record(by_rank, chosen);
  if (best == nullptr && !by_rank.empty()) best = &by_rank.front();
  if (best == nullptr || !std::holds_alternative<Measured>(best->outcome)) return std::nullopt;
  return *best;
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string near = did_you_mean(name, known);
  if (!near.empty() || name.empty()) return near;
  const auto begins = std::find_if(known.begin(), known.end(), [&](const std::string& candidate) {
    return candidate.rfind(name, 0) == 0;
  });
  if (begins != known.end()) return *begins;
  const auto holds = std::find_if(known.begin(), known.end(), [&](const std::string& candidate) {
    return has_letters_of(name, candidate);
  });
  return holds == known.end() ? "" : *holds;
}

}  // namespace dstune
