#include "core/search/tuner/finalists.hpp"

#include <algorithm>

namespace dstune {
bool overlaps_another(const Record& record, const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [&](const Record& other) {
    return other.started < record.finished && record.started < other.finished &&
           other.experiment.name != record.experiment.name;
  });
}

std::vector<Candidate> choose_finalists(const std::vector<Record>& stage_bests,
                                        const std::vector<Record>& records) {
  const bool disturbed =
      std::any_of(stage_bests.begin(), stage_bests.end(),
                  [&](const Record& record) { return overlaps_another(record, records); });
  std::vector<Candidate> finalists;
  if (!disturbed) return finalists;
  for (const auto& record : stage_bests) {
    const Experiment& best = record.experiment;
    finalists.push_back({best.name + "_alone", best.ds_config, 1});
  }
  return finalists;
}

}  // namespace dstune
