// The tuner that asks where the best is most likely to be, and stops when it is nowhere else.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/predict/chances.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/tuners/pool_tuner.hpp"

namespace dstune {

/// Next is the candidate with the highest chance of being better than the best beyond noise, over
/// all stages and micro-batches at once. Idle groups get the next best as things will stand if what
/// runs then comes out as predicted. It ends when no candidate has a chance of at least
/// dstune.stop_at_chance.
class GuidedTuner final : public PoolTuner {
 public:
  GuidedTuner(const TuningConfig& config, int group_size, Pool pool,
              std::unique_ptr<Forecaster> forecaster);

  /// With what was not tried, and how likely it was to be better.
  std::vector<std::string> remarks() override;

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  void take_in(const Record& record) override;

  /// Of an untried candidate.
  Guess guess(std::size_t index);
  /// That it fits and is better than `threshold`.
  double chance(std::size_t index, double threshold);
  /// The log-speed that counts as better than the best; none before anything was measured.
  std::optional<double> threshold() const;
  /// Where in `open` the next one is.
  std::size_t most_promising(const std::vector<std::size_t>& open, std::optional<double> to_beat);
  bool has_learnt_enough() const;

  std::unique_ptr<Forecaster> forecaster_;
  std::vector<std::optional<Guess>> guesses_;  ///< since something was learnt
};

}  // namespace dstune
