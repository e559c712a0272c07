// DeepSpeed's model_based: what the predictor holds to be best comes first.
#pragma once

#include <memory>

#include "core/search/choice/forecaster.hpp"
#include "core/search/pooled/pool_tuner.hpp"

namespace dstune {

/// The pool's first candidate and a random one begin; then those with the best predictions, a fifth
/// of them random instead, as DeepSpeed meant it (docs/tuner-faults.md, 20). Random is that of
/// dstune.seed.
class ModelBasedTuner final : public PoolTuner {
 public:
  ModelBasedTuner(const TuningConfig& config, int group_size, Pool pool,
                  std::unique_ptr<Forecaster> forecaster);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  std::string end() const override { return end_by_early_stopping(config(), trials()); }
  void take_in(const Record& record) override;
  /// Puts the best predicted first.
  void sort(std::vector<std::size_t>& open);
  /// Which of `left` sorted candidates is taken as number `trial`.
  std::size_t pick(std::size_t trial, std::size_t left) const;

  std::unique_ptr<Forecaster> forecaster_;
};

}  // namespace dstune
