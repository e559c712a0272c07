#include "core/search/tuner/fast_mode.hpp"

#include <cstddef>
#include <utility>
#include <variant>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/tuner/finalists.hpp"
#include "core/search/tuner/score.hpp"
#include "core/search/tuner/stage_search.hpp"

namespace dstune {

FastMode::FastMode(const TuningConfig& config, int group_size, const std::vector<StagePlan>& stages)
    : config_(config), group_size_(group_size), stages_(stages), prober_(config) {}

std::vector<Candidate> FastMode::next(int free_groups) {
  const Exploration found = explore(free_groups);
  std::vector<Candidate> candidates;
  for (const Point& point : prober_.wanted()) {
    candidates.push_back(make_candidate(config_, group_size_, point));
    asked_.insert_or_assign(candidates.back().name, point);
  }
  if (!candidates.empty()) return candidates;
  for (Candidate& finalist : finalists(found)) {  // one at a time: alone
    if (!repeated_.contains(finalist.name)) return {std::move(finalist)};
  }
  return {};
}

void FastMode::learn(const Record& record) {
  if (record.experiment.repetition > 0) {
    repeated_.insert_or_assign(record.experiment.name, record);
  } else {
    prober_.learn(asked_.at(record.experiment.name), record);
  }
}

std::optional<Record> FastMode::best() {
  const Record* best = winner(explore(0));
  return best == nullptr ? std::nullopt : std::optional(*best);
}

const Record* FastMode::winner(const Exploration& found) const {
  const Record* best = found.best;
  const Measured* winner = nullptr;
  const auto alone = finalists(found);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const auto repeated = repeated_.find(alone[i].name);
    if (repeated == repeated_.end()) continue;
    const auto* measured = std::get_if<Measured>(&repeated->second.outcome);
    if (measured == nullptr) continue;
    const auto metric = config_.autotuning.metric;
    if (winner != nullptr && !is_clearly_better(metric, *measured, *winner)) continue;
    winner = measured;
    best = found.stage_bests[i];
  }
  return best;
}

std::vector<Candidate> FastMode::finalists(const Exploration& found) const {
  std::vector<Record> bests;
  for (const Record* record : found.stage_bests) bests.push_back(*record);
  return choose_finalists(bests, prober_.records());
}

void FastMode::log_skipped(const StagePlan& plan, std::int64_t previous_max) {
  if (!skipped_.insert(plan.stage).second) return;
  log_debug(concat("stage ", plan.stage, " is skipped: at most micro-batch ", plan.max_micro_batch,
                   " fits, but ", previous_max, " ran before"));
}

FastMode::Exploration FastMode::explore(int free_groups) {
  prober_.begin(free_groups);
  const auto metric = config_.autotuning.metric;
  // A larger micro-batch is a better start only where more samples at once are better.
  const bool progressive = metric != Metric::latency && config_.micro_batches.empty();
  Exploration found;
  std::int64_t best_micro_batch = 0;
  std::int64_t previous_max = 0;
  for (const auto& plan : stages_) {
    if (prober_.is_over()) break;
    if (!plan.feasible && plan.unsupported.empty()) continue;
    if (progressive && plan.feasible && plan.max_micro_batch < previous_max) {
      log_skipped(plan, previous_max);
      continue;
    }
    const auto result = StageSearch(prober_, config_, group_size_, plan).run(previous_max);
    if (result.best == nullptr) continue;
    found.stage_bests.push_back(result.best);
    const bool is_better =
        found.best == nullptr || is_clearly_better(metric, std::get<Measured>(result.best->outcome),
                                                   std::get<Measured>(found.best->outcome));
    if (is_better) found.best = result.best;
    const auto micro_batch = asked_.at(result.best->experiment.name).micro_batch;
    if (progressive && (is_better || micro_batch > best_micro_batch)) {
      best_micro_batch = micro_batch;
      previous_max = result.max_micro_batch;
    }
  }
  return found;
}

}  // namespace dstune
