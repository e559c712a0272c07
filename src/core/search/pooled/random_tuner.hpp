// DeepSpeed's random tuner: any candidate, none twice.
#pragma once

#include "core/search/pooled/pool_tuner.hpp"

namespace dstune {

/// The order is that of dstune.seed.
class RandomTuner final : public PoolTuner {
 public:
  RandomTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  std::string end() const override { return end_by_early_stopping(config(), trials()); }
};

}  // namespace dstune
