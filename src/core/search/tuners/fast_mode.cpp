#include "core/search/tuners/fast_mode.hpp"

#include <utility>
#include <variant>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {

StageSweep::StageSweep(const TuningConfig& config, int group_size,
                       const std::vector<StagePlan>& stages, MakeSpaceTuner make_space_tuner)
    : config_(config),
      group_size_(group_size),
      stages_(stages),
      make_space_tuner_(std::move(make_space_tuner)),
      prober_(config) {}

std::vector<Candidate> StageSweep::next(int free_groups) {
  Exploration found = explore(free_groups);
  if (!found.wanted.empty()) return std::move(found.wanted);
  std::vector<Candidate> candidates;
  for (const Point& point : prober_.wanted()) {
    candidates.push_back(make_candidate(config_, group_size_, point));
    asked_.insert_or_assign(candidates.back().name, point);
  }
  return candidates;
}

void StageSweep::learn(const Record& record) {
  const auto of_space = asked_of_space_.find(record.experiment.name);
  if (of_space == asked_of_space_.end()) {
    prober_.learn(asked_.at(record.experiment.name), record);
    return;
  }
  SpaceSearch& space = spaces_.at(of_space->second);
  space.tuner->learn(record);
  space.best = space.tuner->best();
}

std::optional<Record> StageSweep::best() {
  const Record* best = explore(0).best;
  return best == nullptr ? std::nullopt : std::optional(*best);
}

std::vector<Record> StageSweep::stage_bests() {
  std::vector<Record> bests;
  for (const Record* record : explore(0).stage_bests) bests.push_back(*record);
  return bests;
}

std::vector<std::string> StageSweep::remarks() {
  std::vector<std::string> remarks;
  for (const auto& [stage, space] : spaces_) {
    for (const auto& remark : space.tuner->remarks()) {
      remarks.push_back(concat("stage ", stage, ": ", remark));
    }
  }
  return remarks;
}

void StageSweep::log_skipped(const StagePlan& plan, std::int64_t previous_max) {
  if (!skipped_.insert(plan.stage).second) return;
  log_debug(concat("stage ", plan.stage, " is skipped: at most micro-batch ", plan.max_micro_batch,
                   " fits, but ", previous_max, " ran before"));
}

bool StageSweep::is_better(const Record& challenger, const Record* incumbent) const {
  return incumbent == nullptr ||
         is_clearly_better(config_.autotuning.metric, std::get<Measured>(challenger.outcome),
                           std::get<Measured>(incumbent->outcome));
}

const Record* StageSweep::search_space(const StagePlan& plan, const StageResult& result,
                                       int free_groups, std::vector<Candidate>& wanted) {
  const int stage = plan.stage;
  if (!spaces_.contains(stage)) {
    std::set<std::int64_t> sizes;
    for (const Point& point : result.candidates) sizes.insert(point.micro_batch);
    if (result.best != nullptr) {
      sizes.insert(asked_.at(result.best->experiment.name).micro_batch);
    }
    spaces_[stage].tuner = make_space_tuner_(plan, {sizes.begin(), sizes.end()});
  }
  SpaceSearch& space = spaces_.at(stage);
  if (free_groups > 0) wanted = space.tuner->next(free_groups);
  for (const Candidate& candidate : wanted) asked_of_space_[candidate.name] = stage;
  return space.best && is_better(*space.best, result.best) ? &*space.best : result.best;
}

StageSweep::Exploration StageSweep::explore(int free_groups) {
  prober_.begin(free_groups);
  // A stage's larger micro-batch is a better start for the next stage only where more samples at
  // once are better.
  const bool progressive =
      config_.autotuning.metric != Metric::latency && config_.micro_batches.empty();
  Exploration found;
  const Record* fast_best = nullptr;  // the best without the stages' spaces
  std::int64_t best_micro_batch = 0;
  std::int64_t previous_max = 0;
  for (const auto& plan : stages_) {
    if (prober_.is_over()) break;
    // If the file's settings do not fit, others of the stage's space may.
    const bool is_space_alone = !plan.feasible && plan.unsupported.empty();
    if (is_space_alone && !make_space_tuner_) continue;
    if (progressive && plan.feasible && plan.max_micro_batch < previous_max) {
      log_skipped(plan, previous_max);
      continue;
    }
    const auto result = is_space_alone
                            ? StageResult{}
                            : StageSearch(prober_, config_, group_size_, plan).run(previous_max);
    if (result.best == nullptr && !is_space_alone) continue;
    const bool is_worse =
        fast_best != nullptr && !is_space_alone && is_better(*fast_best, result.best);
    const bool has_space = make_space_tuner_ && plan.stage > 0 && !is_worse;
    const Record* stage_best = has_space && prober_.wanted().empty()
                                   ? search_space(plan, result, free_groups, found.wanted)
                                   : result.best;
    if (stage_best != nullptr) found.stage_bests.push_back(stage_best);
    const bool is_best = stage_best != nullptr && is_better(*stage_best, found.best);
    if (is_best) found.best = stage_best;
    if (!is_space_alone && is_better(*result.best, fast_best)) fast_best = result.best;
    if (!found.wanted.empty()) break;
    if (is_space_alone) continue;
    const auto micro_batch = asked_.at(result.best->experiment.name).micro_batch;
    if (progressive && (is_best || micro_batch > best_micro_batch)) {
      best_micro_batch = micro_batch;
      previous_max = result.max_micro_batch;
    }
  }
  return found;
}

// All tuners are made by one signature. NOLINTNEXTLINE(performance-unnecessary-value-param)
std::unique_ptr<Tuner> make_fast_tuner(const TunerParts& parts, Pool /*none*/) {
  return std::make_unique<FastMode>(parts.config, parts.group_size, parts.stages);
}

}  // namespace dstune
