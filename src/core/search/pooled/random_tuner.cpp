#include "core/search/pooled/random_tuner.hpp"

#include <algorithm>
#include <utility>

namespace dstune {

RandomTuner::RandomTuner(const TuningConfig& config, int group_size, Pool pool)
    : PoolTuner("random", config, group_size, std::move(pool)) {}

std::vector<std::size_t> RandomTuner::choose(std::size_t count) {
  auto open = trials().open();
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !open.empty()) {
    const auto at = random(trials().tried() + chosen.size()) % open.size();
    chosen.push_back(open[at]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return chosen;
}

}  // namespace dstune
