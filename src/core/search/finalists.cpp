#include "core/search/finalists.hpp"

#include <algorithm>

namespace dstune {
namespace {

bool overlaps_another(const Record& record, const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [&](const Record& other) {
    return other.experiment.name != record.experiment.name && other.started < record.finished &&
           record.started < other.finished;
  });
}

}  // namespace

std::vector<Experiment> choose_finalists(const std::vector<Record>& stage_bests,
                                         const std::vector<Record>& records) {
  const bool disturbed =
      std::any_of(stage_bests.begin(), stage_bests.end(),
                  [&](const Record& record) { return overlaps_another(record, records); });
  std::vector<Experiment> finalists;
  if (!disturbed) return finalists;
  for (const auto& record : stage_bests) {
    finalists.push_back(record.experiment);
    finalists.back().name += "_alone";
    finalists.back().repetition = 1;
  }
  return finalists;
}

}  // namespace dstune
