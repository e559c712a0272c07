// The tuner that measures the candidates most likely to be the best, and stops when no other is
// likely to be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/predict/chances.hpp"
#include "core/search/predict/forecaster.hpp"
#include "core/search/tuners/pool_tuner.hpp"

namespace dstune {

/// Tries next the candidate with the highest chance of being better than the best beyond noise,
/// over all stages and micro-batches at once. Further idle groups get the candidates that would be
/// next if the chosen ones came out as predicted. It ends when no candidate has a chance of at
/// least dstune.stop_at_chance.
class GuidedTuner final : public PoolTuner {
 public:
  GuidedTuner(const TuningConfig& config, int group_size, Pool pool,
              std::unique_ptr<Forecaster> forecaster);

  /// The remarks of PoolTuner, with the number of untried candidates and the chance that one was
  /// better.
  std::vector<std::string> remarks() override;

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  void take_in(const Record& record) override;

  /// The predicted log-speed of an untried candidate.
  /// Lets the forecaster find at once what it needs for the guesses that are to come.
  void expect_guesses(const std::vector<std::size_t>& indices);
  Guess guess(std::size_t index);
  /// The chance that the candidate fits and is better than `threshold`.
  double chance(std::size_t index, double threshold);
  /// The log-speed that counts as better than the best; none before anything was measured.
  std::optional<double> threshold() const;
  /// The place in `open` of the candidate to try next.
  std::size_t most_promising(const std::vector<std::size_t>& open, std::optional<double> to_beat);
  bool has_learnt_enough() const;

  std::unique_ptr<Forecaster> forecaster_;
  /// By candidate: the prediction, if it was made since the last measurement was learnt.
  std::vector<std::optional<Guess>> guesses_;
};

}  // namespace dstune
