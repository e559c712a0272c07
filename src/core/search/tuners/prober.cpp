#include "core/search/tuners/prober.hpp"

#include <algorithm>
#include <variant>

#include "core/search/tuners/compare/score.hpp"

namespace dstune {

void Prober::begin(int slots) {
  slots_ = slots;
  fetches_ = 0;
  visited_.clear();
  wanted_.clear();
}

bool Prober::is_over() const {
  const auto trials = static_cast<std::size_t>(std::max(config_.autotuning.tuner_num_trials, 0));
  return !wanted_.empty() || visited_.size() >= trials;
}

const Measured* Prober::visit(const Point& point) {
  const bool is_new = std::find(visited_.begin(), visited_.end(), point) == visited_.end();
  if (is_new && is_over()) return nullptr;
  const auto found = known_.find(point);
  if (found == known_.end()) {
    wanted_ = {point};
    return nullptr;
  }
  if (is_new) visited_.push_back(point);
  return std::get_if<Measured>(&found->second.outcome);
}

void Prober::prefetch(const std::vector<Point>& points) {
  if (is_over() || slots_ == 0 || fetches_++ < fetched_) return;
  fetched_ = fetches_;
  if (slots_ < 2) return;
  std::vector<Point> batch;
  for (const auto& point : points) {
    const bool is_known =
        known_.contains(point) || std::find(batch.begin(), batch.end(), point) != batch.end();
    if (!is_known && batch.size() < static_cast<std::size_t>(slots_)) batch.push_back(point);
  }
  wanted_ = std::move(batch);
}

const Record* Prober::best_since(std::size_t first) const {
  const Record* best = nullptr;
  for (std::size_t i = first; i < visited_.size(); ++i) {
    const auto& record = known_.at(visited_[i]);
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr) continue;
    if (best == nullptr || is_clearly_better(config_.autotuning.metric, *measured,
                                             std::get<Measured>(best->outcome))) {
      best = &record;
    }
  }
  return best;
}

}  // namespace dstune
