#include "core/search/pooled/grid_tuner.hpp"

#include <algorithm>
#include <utility>

namespace dstune {

GridTuner::GridTuner(const TuningConfig& config, int group_size, Pool pool)
    : PoolTuner("gridsearch", config, group_size, std::move(pool)) {}

std::vector<std::size_t> GridTuner::choose(std::size_t count) {
  auto open = trials().open();
  open.resize(std::min(open.size(), count));
  return open;
}

}  // namespace dstune
