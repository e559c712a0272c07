#include "core/search/tuners/trials.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"

namespace dstune {

Trials::Trials(Pool pool, Metric metric)
    : pool_(std::move(pool)), metric_(metric), records_(pool_.candidates.size()) {
  for (std::size_t i = 0; i < size(); ++i) by_name_.emplace(at(i).candidate.name, i);
}

void Trials::learn(const Record& record) {
  const std::size_t index = by_name_.at(record.experiment.name);
  const bool is_new = !is_tried(index);
  records_[index] = record;
  if (!is_new) return;
  const int stage = at(index).point.stage;
  const auto* const short_of = std::get_if<OutOfMemory>(&record.outcome);
  if (short_of != nullptr && short_of->tier != Tier::nvme && short_of->tier != Tier::locked) {
    auto& failed = too_large_[stage];
    failed.insert(std::ranges::upper_bound(failed, memory(index)), memory(index));
  }
  if (const Measured* found = measured(index)) {
    ++measurements_;
    ran_[stage] = std::max(ran_[stage], memory(index));
    const bool is_faster = !best_ || score(metric_, *found) > score(metric_, *measured(*best_));
    if (is_faster) best_trial_ = tried_;  // no progress of the search is to be only simpler
    if (is_faster || is_better_choice(metric_, record, this->record(*best_))) best_ = index;
  }
  ++tried_;
}

const Measured* Trials::measured(std::size_t index) const {
  return is_tried(index) ? std::get_if<Measured>(&records_[index]->outcome) : nullptr;
}

int Trials::warnings(std::size_t index) const {
  const int stage = at(index).point.stage;
  const auto ran = ran_.find(stage);
  if (ran != ran_.end() && memory(index) <= ran->second) return 0;
  const auto failed = too_large_.find(stage);
  if (failed == too_large_.end()) return 0;
  return static_cast<int>(std::ranges::upper_bound(failed->second, memory(index)) -
                          failed->second.begin());
}

std::vector<std::size_t> Trials::untried() const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_tried(i)) indices.push_back(i);
  }
  return indices;
}

std::vector<std::size_t> Trials::open() const {
  std::vector<std::size_t> open;
  std::map<int, std::size_t> smallest;  // by stage: the deferred candidate that needs least memory
  std::set<int> with_others;            // stages with candidates that are not deferred
  for (const std::size_t i : untried()) {
    const int stage = at(i).point.stage;
    if (warnings(i) == 0) {
      open.push_back(i);
      with_others.insert(stage);
      continue;
    }
    const auto found = smallest.try_emplace(stage, i).first;
    if (memory(i) < memory(found->second)) found->second = i;
  }
  for (const auto& [stage, index] : smallest) {
    if (!with_others.contains(stage)) open.push_back(index);
  }
  return open;
}

}  // namespace dstune
