#include "core/search/tuners/time_budget.hpp"

#include <algorithm>
#include <utility>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {

TimeBudget::TimeBudget(std::unique_ptr<Tuner> tuner, Seconds budget, double share)
    : tuner_(std::move(tuner)), budget_(budget), share_(share) {}

bool TimeBudget::is_over() const {
  return !durations_.empty() && spent_ + summarize(durations_).median > budget_ * share_;
}

std::vector<Candidate> TimeBudget::next(int free_groups) {
  auto candidates = tuner_->next(free_groups);
  has_cut_ = is_over() && !candidates.empty();
  if (has_cut_) candidates.clear();
  return candidates;
}

void TimeBudget::learn(const Record& record) {
  spent_ = std::max(spent_, record.finished);
  durations_.push_back(record.finished - record.started);
  tuner_->learn(record);
}

std::vector<std::string> TimeBudget::remarks() {
  auto remarks = tuner_->remarks();
  if (has_cut_) {
    remarks.insert(remarks.begin(),
                   concat("time_budget ", format_seconds(budget_), " ended the ",
                          share_ < 1 ? "search" : "run", " after ", format_seconds(spent_),
                          share_ < 1 ? ": there was more to try"
                                     : ": the best so far is not what a whole run would confirm"));
  }
  return remarks;
}

}  // namespace dstune
