// DeepSpeed's fast mode, which looks for the best stage and micro-batch, with its known faults
// mended.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/tuners/confirmation.hpp"
#include "core/search/tuners/prober.hpp"
#include "core/search/tuners/stage_search.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// Searches the stages in ascending order, each from the largest micro-batch of the last stage that
/// was better or had a larger one, and skips those with a smaller largest micro-batch. One
/// experiment is better than another only beyond noise (is_clearly_better()), so the smaller stage
/// wins ties.
///
/// tuner_num_trials bounds the points that are visited (points that are fetched ahead do not
/// count); tuner_early_stopping belongs to the full mode and does nothing here.
///
/// With fast mode off each stage's own space follows its micro-batches (docs/deepspeed-step.md,
/// "DeepSpeed's autotuner: micro-batches"), unless an earlier stage's micro-batches were better
/// beyond noise; the better result of both is the stage's. Where the file's settings do not fit,
/// the space is searched with micro-batches of its own.
class StageSweep final : public Tuner {
 public:
  /// Makes a tuner over the space of a stage, with these micro-batches (ascending).
  using MakeSpaceTuner = std::function<std::unique_ptr<Tuner>(
      const StagePlan& plan, const std::vector<std::int64_t>& micro_batches)>;

  /// The references must outlive this.
  /// @param make_space_tuner  makes the tuners of the full mode; empty: fast mode
  StageSweep(const TuningConfig& config, int group_size, const std::vector<StagePlan>& stages,
             MakeSpaceTuner make_space_tuner = {});

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override;
  std::vector<Record> stage_bests() override;
  /// The remarks of each space's tuner in the full mode, with the stage; in fast mode there are
  /// none.
  std::vector<std::string> remarks() override;

 private:
  /// The results of the stages, as far as they are known. The prober or spaces_ owns the records.
  struct Exploration {
    const Record* best = nullptr;
    std::vector<const Record*> stage_bests;
    /// Candidates of a stage's space, which come before the next stages.
    std::vector<Candidate> wanted;
  };
  /// The full mode's search of one stage's space.
  struct SpaceSearch {
    std::unique_ptr<Tuner> tuner;
    std::optional<Record> best;
  };

  /// Makes one pass of the search, from its first point.
  Exploration explore(int free_groups);
  /// The better one of the bests of the stage's micro-batches and of its space. It puts the
  /// candidates for which the space's tuner asks into `wanted`.
  const Record* search_space(const StagePlan& plan, const StageResult& result, int free_groups,
                             std::vector<Candidate>& wanted);
  /// Whether `challenger` is better beyond noise; any is better than null.
  bool is_better(const Record& challenger, const Record* incumbent) const;
  void log_skipped(const StagePlan& plan, std::int64_t previous_max);

  const TuningConfig& config_;
  int group_size_;
  const std::vector<StagePlan>& stages_;
  MakeSpaceTuner make_space_tuner_;
  Prober prober_;
  std::map<int, SpaceSearch> spaces_;          ///< by stage: the searches that were begun
  std::map<std::string, int> asked_of_space_;  ///< by the experiment's name: its stage
  std::map<std::string, Point> asked_;         ///< by the experiment's name: its point
  std::set<int> skipped_;                      ///< the stages whose skipping was logged
};

/// Searches the stages' micro-batches without their spaces. The answer does not depend on how many
/// experiments run at once: where several did, the best of each stage is measured once more alone,
/// and these measurements decide.
class FastMode final : public Confirmation {
 public:
  /// The references must outlive this.
  FastMode(const TuningConfig& config, int group_size, const std::vector<StagePlan>& stages)
      : Confirmation(std::make_unique<StageSweep>(config, group_size, stages),
                     config.autotuning.metric, ConfirmBy::stages) {}
};

}  // namespace dstune
