// DeepSpeed's own tuners over a pool: gridsearch, random and model_based.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/search/predict/forecaster.hpp"
#include "core/search/tuners/pool_tuner.hpp"

namespace dstune {

/// A tuner that ends by tuner_early_stopping: when so many experiments were tried since the best,
/// itself included. It does not end before something was measured.
class DeepspeedTuner : public PoolTuner {
 protected:
  using PoolTuner::PoolTuner;

 private:
  std::string end() const final;
};

/// Tries the candidates in their order.
class GridTuner final : public DeepspeedTuner {
 public:
  GridTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
};

/// Tries the candidates in a random order that dstune.seed decides, none twice.
class RandomTuner final : public DeepspeedTuner {
 public:
  RandomTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
};

/// Tries the pool's first candidate and a random one, then those with the best predictions, but a
/// random one instead of each fifth on average, as DeepSpeed meant it (docs/tuner-faults.md, 20).
/// dstune.seed decides the random choices.
class ModelBasedTuner final : public DeepspeedTuner {
 public:
  ModelBasedTuner(const TuningConfig& config, int group_size, Pool pool,
                  std::unique_ptr<Forecaster> forecaster);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  void take_in(const Record& record) override;
  /// Sorts `open` by predicted speed, the best first.
  void sort(std::vector<std::size_t>& open);
  /// The place, among `left` sorted candidates, of the one that is tried as number `trial`.
  std::size_t pick(std::size_t trial, std::size_t left) const;

  std::unique_ptr<Forecaster> forecaster_;
};

}  // namespace dstune
