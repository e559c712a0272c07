// DeepSpeed's fast mode: which stage and micro-batch size, with its known faults mended.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/plan/stage_plan.hpp"
#include "core/search/tuner/prober.hpp"
#include "core/search/tuner/tuner.hpp"

namespace dstune {

/// The stages in ascending order, each from the largest micro-batch of the last one that was better
/// (or larger), skipping those that fit fewer micro-batches. One experiment is better than another
/// only beyond noise (is_clearly_better), so the smaller stage wins ties. The answer does not
/// depend on how many experiments run at once: where several did, the best of each stage is
/// measured once more alone (choose_finalists), and these decide.
///
/// tuner_num_trials bounds the points that are visited (what is fetched ahead and the repetitions
/// are not counted); tuner_early_stopping belongs to the full mode and does nothing here.
class FastMode final : public Tuner {
 public:
  /// The references must outlive this.
  FastMode(const TuningConfig& config, int group_size, const std::vector<StagePlan>& stages);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override;

 private:
  /// What the stages came to, as far as it is known. The prober owns the records.
  struct Exploration {
    const Record* best = nullptr;
    std::vector<const Record*> stage_bests;
  };

  /// One pass of the search, from its first point.
  Exploration explore(int free_groups);
  /// The best of each stage, to be measured alone; none if nothing disturbed them.
  std::vector<Candidate> finalists(const Exploration& found) const;
  /// Which of them wins, by its repetition; `found.best` where none is repeated.
  const Record* winner(const Exploration& found) const;
  void log_skipped(const StagePlan& plan, std::int64_t previous_max);

  const TuningConfig& config_;
  int group_size_;
  const std::vector<StagePlan>& stages_;
  Prober prober_;
  std::map<std::string, Point> asked_;      ///< by name of the experiment
  std::map<std::string, Record> repeated_;  ///< finalists, likewise
  std::set<int> skipped_;                   ///< stages of which it was said
};

}  // namespace dstune
