// The tuner that measures the candidates most likely to be the best, and stops when no other is
// likely to be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/predict/belief.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/tuners/outlook.hpp"
#include "core/search/tuners/pool_tuner.hpp"

namespace dstune {

/// Tries next the candidate that is most often the best of all in draws from the Belief, over all
/// stages and micro-batches at once; further idle groups get the next ones. What was never measured
/// with a setting's value is believed to be uncertain by a residual of that value, so that such
/// values are probed, each with the best candidate that has it, as far as what physics predicts for
/// them leaves them a chance. A candidate whose first steps show that it cannot be the best is
/// measured no further. It ends when the chance that any untried candidate is better by
/// kBetterBy is below dstune.stop_at_chance.
class GuidedTuner final : public PoolTuner {
 public:
  GuidedTuner(const TuningConfig& config, int group_size, Pool pool,
              std::unique_ptr<Forecaster> forecaster);

  std::optional<Record> best() override;
  std::vector<std::string> contenders() override;
  std::vector<PredictedStep> predictions() override;
  /// Those that may still be the best, each of which is either tried or loses its chance.
  std::optional<int> still_to_come() override;
  std::optional<Seconds> foretold(const std::string& name) override;
  /// The remarks of PoolTuner, with the number of untried candidates and the chance that one was
  /// better.
  std::vector<std::string> remarks() override;
  /// What the search may still find, after all that was learnt.
  const Outlook& outlook();

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  void take_in(const Record& record) override;
  Seconds give_up_above(std::size_t index) override;

  Belief belief_of_pool() const;
  /// By candidate: how many are simpler (Simplicity), as far as that is known without a
  /// measurement.
  std::vector<std::size_t> simplicity_of_pool() const;
  /// What the forecaster knows of all candidates.
  std::vector<PhysicsGuess> physics();
  bool has_learnt_enough() const;

  std::unique_ptr<Forecaster> forecaster_;
  bool has_asked_ = false;  ///< the forecaster expects the candidates
  Belief belief_;
  std::vector<std::size_t> simplicity_;
  std::optional<Outlook> outlook_;  ///< none since the last record was learnt
  int given_up_ = 0;                ///< measurements that ended early (Experiment::give_up_above)
  double slowed_ = 1;               ///< Record::slowed of the last that was measured
};

}  // namespace dstune
