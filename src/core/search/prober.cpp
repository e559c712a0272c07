#include "core/search/prober.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "core/search/score.hpp"

namespace dstune {

Prober::Prober(const TuningConfig& config, int group_size, Runner run, Slots slots)
    : config_(config), group_size_(group_size), run_(std::move(run)), slots_(std::move(slots)) {}

bool Prober::is_over() const {
  const auto trials = static_cast<std::size_t>(std::max(config_.autotuning.tuner_num_trials, 0));
  return stopped_ || visited_.size() >= trials;
}

const Measured* Prober::visit(const Point& point) {
  const bool is_new = std::find(visited_.begin(), visited_.end(), point) == visited_.end();
  if (is_new && is_over()) return nullptr;
  if (!ran_.contains(point)) run({point});
  const auto found = ran_.find(point);
  if (found == ran_.end()) return nullptr;
  if (is_new) visited_.push_back(point);
  return std::get_if<Measured>(&found->second.outcome);
}

void Prober::prefetch(const std::vector<Point>& points) {
  const auto slots = static_cast<std::size_t>(std::max(slots_(), 0));
  if (slots < 2 || is_over()) return;
  std::vector<Point> batch;
  for (const auto& point : points) {
    const bool is_known =
        ran_.contains(point) || std::find(batch.begin(), batch.end(), point) != batch.end();
    if (!is_known && batch.size() < slots) batch.push_back(point);
  }
  if (!batch.empty()) run(batch);
}

void Prober::run(const std::vector<Point>& points) {
  std::map<std::string, Point> by_name;
  std::vector<Experiment> batch;
  for (const auto& point : points) {
    batch.push_back(make_experiment(config_, group_size_, point.stage, point.micro_batch,
                                    point.accumulation_steps));
    by_name.emplace(batch.back().name, point);
  }
  auto records = run_(batch);
  if (records.size() < batch.size()) stopped_ = true;
  for (auto& record : records) {
    const auto point = by_name.at(record.experiment.name);
    ran_.insert_or_assign(point, std::move(record));
  }
}

const Record* Prober::best_since(std::size_t first) const {
  const Record* best = nullptr;
  for (std::size_t i = first; i < visited_.size(); ++i) {
    const auto& record = ran_.at(visited_[i]);
    const auto* measured = std::get_if<Measured>(&record.outcome);
    if (measured == nullptr) continue;
    if (best == nullptr || is_clearly_better(config_.autotuning.metric, *measured,
                                             std::get<Measured>(best->outcome))) {
      best = &record;
    }
  }
  return best;
}

std::vector<Record> Prober::records() const {
  std::vector<Record> records;
  for (const auto& [point, record] : ran_) records.push_back(record);
  std::stable_sort(records.begin(), records.end(),
                   [](const Record& a, const Record& b) { return a.finished < b.finished; });
  return records;
}

}  // namespace dstune
