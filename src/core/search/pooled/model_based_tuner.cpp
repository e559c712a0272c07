#include "core/search/pooled/model_based_tuner.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "core/search/choice/chances.hpp"

namespace dstune {
namespace {

constexpr std::size_t kFirst = 2;    // DeepSpeed's INIT_NUM
constexpr std::uint64_t kOneIn = 5;  // its random_exploration_ratio is 0.2

}  // namespace

ModelBasedTuner::ModelBasedTuner(const TuningConfig& config, int group_size, Pool pool,
                                 std::unique_ptr<Forecaster> forecaster)
    : PoolTuner("model_based", config, group_size, std::move(pool)),
      forecaster_(std::move(forecaster)) {}

void ModelBasedTuner::take_in(const Record& record) {
  const auto* measured = std::get_if<Measured>(&record.outcome);
  if (measured != nullptr) forecaster_->learn(record.experiment, *measured);
}

std::vector<std::size_t> ModelBasedTuner::choose(std::size_t count) {
  auto open = trials().open();
  if (trials().tried() >= kFirst) sort(open);
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !open.empty()) {
    const auto at = pick(trials().tried() + chosen.size(), open.size());
    chosen.push_back(open[at]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return chosen;
}

void ModelBasedTuner::sort(std::vector<std::size_t>& open) {
  std::map<std::size_t, double> speeds;
  for (const std::size_t i : open) {
    const Prediction prediction = forecaster_->predict(experiment(i));
    speeds[i] = guess_of(metric(), samples(i), prediction).mean;
  }
  std::ranges::stable_sort(open, std::greater<>(), [&](std::size_t i) { return speeds.at(i); });
}

std::size_t ModelBasedTuner::pick(std::size_t trial, std::size_t left) const {
  if (trial == 0) return 0;
  const std::uint64_t number = random(trial);
  if (trial >= kFirst && number % kOneIn != 0) return 0;
  return number / kOneIn % left;
}

}  // namespace dstune
