// DeepSpeed's gridsearch: the candidates in their order.
#pragma once

#include "core/search/pooled/pool_tuner.hpp"

namespace dstune {

class GridTuner final : public PoolTuner {
 public:
  GridTuner(const TuningConfig& config, int group_size, Pool pool);

 private:
  std::vector<std::size_t> choose(std::size_t count) override;
  std::string end() const override { return end_by_early_stopping(config(), trials()); }
};

}  // namespace dstune
