// DeepSpeed's own tuners over a pool: gridsearch, random and model_based.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/search/predict/forecaster.hpp"
#include "core/search/tuners/pool_tuner.hpp"

namespace dstune {

/// Ends by tuner_early_stopping: the best, itself included, was followed by so many that are no
/// better. Nothing ends before something was measured.
class DeepspeedTuner : public PoolTuner {
 protected:
  using PoolTuner::PoolTuner;

 private:
  std::string end() const final;
};

/// The candidates in their order.
class GridTuner final : public DeepspeedTuner {
 public:
  GridTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
};

/// Any candidate, none twice, in the order of dstune.seed.
class RandomTuner final : public DeepspeedTuner {
 public:
  RandomTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
};

/// The pool's first candidate and a random one begin; then those with the best predictions, a fifth
/// of them random instead, as DeepSpeed meant it (docs/tuner-faults.md, 20). Random is
/// that of dstune.seed.
class ModelBasedTuner final : public DeepspeedTuner {
 public:
  ModelBasedTuner(const TuningConfig& config, int group_size, Pool pool,
                  std::unique_ptr<Forecaster> forecaster);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  void take_in(const Record& record) override;
  /// Puts the best predicted first.
  void sort(std::vector<std::size_t>& open);
  /// Which of `left` sorted candidates is taken as number `trial`.
  std::size_t pick(std::size_t trial, std::size_t left) const;

  std::unique_ptr<Forecaster> forecaster_;
};

}  // namespace dstune
