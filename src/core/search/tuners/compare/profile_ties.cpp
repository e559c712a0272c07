#include "core/search/tuners/compare/profile_ties.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/search/tuners/compare/deciding_measurement.hpp"
#include "core/search/tuners/compare/profile_spread.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune {
namespace {

/// A configuration that ties with the best, and its score.
struct Tie {
  const Record* record = nullptr;
  double score = 0;
};

std::vector<Tie> ties_of(const std::vector<Record>& records, Metric metric, const Record& best) {
  const Comparison comparison(best, records);
  std::vector<Tie> ties;
  for (const Record& record : records) {
    const bool is_other = record.experiment.repetition == 0 && !comparison.is_one(record);
    const auto pair = is_other ? comparison.with(record) : std::nullopt;
    if (!pair) continue;
    const auto& [ours, theirs] = *pair;
    if (hangs_on_profile(best.experiment.settings, metric, *ours, *theirs)) {
      ties.push_back({&record, score(metric, *theirs)});
    }
  }
  return ties;
}

// The names in one text: "z1, z2 and z3".
std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string> all_but_last(names.begin(), names.end() - 1);
  return all_but_last.empty() ? names.back()
                              : concat(join(all_but_last, ", "), " and ", names.back());
}

}  // namespace

std::set<std::string> profile_ties(const std::vector<Record>& records, Metric metric,
                                   const Record& best) {
  const std::vector<Tie> ties = ties_of(records, metric, best);
  std::set<std::string> names;
  for (const Record& record : records) {
    const bool is_tie = std::ranges::any_of(ties, [&](const Tie& tie) {
      return tie.record->experiment.ds_config == record.experiment.ds_config;
    });
    if (is_tie) names.insert(record.experiment.name);
  }
  return names;
}

std::string profile_ties_remark(const std::vector<Record>& records, Metric metric,
                                const Record& best) {
  std::map<int, Tie> best_of_stage;
  for (const Tie& tie : ties_of(records, metric, best)) {
    Tie& so_far = best_of_stage[make_step_config(tie.record->experiment).stage];
    if (so_far.record == nullptr || tie.score > so_far.score) so_far = tie;
  }
  if (best_of_stage.empty()) return "";
  const int own_stage = make_step_config(best.experiment).stage;
  std::vector<std::string> names = {best_of_stage.contains(own_stage) ? best.experiment.name
                                                                      : concat("z", own_stage)};
  for (const auto& [stage, tie] : best_of_stage) {
    names.push_back(stage == own_stage ? tie.record->experiment.name : concat("z", stage));
  }
  const HostOverhead& overhead = best.experiment.settings.host_overhead;
  if (overhead.spread_factor == 1) {
    return concat(listed(names), " are a tie within the profile's uncertainty");
  }
  const std::vector<std::string> others(names.begin() + 1, names.end());
  return concat(listed(names), " are a tie within the ",
                preset_of(overhead).empty() ? "profile's" : "preset's",
                " spread; calibrate to tell ", names.front(), " from ", listed(others),
                " (3 minutes): scripts/tune.sh --calibrate");
}

}  // namespace dstune
