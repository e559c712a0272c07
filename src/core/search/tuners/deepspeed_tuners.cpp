#include "core/search/tuners/deepspeed_tuners.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <variant>

#include "core/base/text.hpp"
#include "core/search/predict/chances.hpp"
#include "core/search/tuners/tuner_table.hpp"

namespace dstune {
namespace {

constexpr std::size_t kFirst = 2;    // DeepSpeed's INIT_NUM
constexpr std::uint64_t kOneIn = 5;  // DeepSpeed's random_exploration_ratio is 0.2

std::size_t take(std::vector<std::size_t>& open, std::size_t at) {
  const std::size_t taken = open[at];
  open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
  return taken;
}

}  // namespace

std::string DeepspeedTuner::end() const {
  const int patience = config().autotuning.tuner_early_stopping;
  if (trials().since_best() < static_cast<std::size_t>(patience)) return "";
  return concat("none of the last ", trials().since_best() - 1,
                " was better (tuner_early_stopping is ", patience, ")");
}

GridTuner::GridTuner(const TuningConfig& config, int group_size, Pool pool)
    : DeepspeedTuner("gridsearch", config, group_size, std::move(pool)) {}

std::vector<std::size_t> GridTuner::choose(std::size_t count) {
  auto open = trials().open();
  open.resize(std::min(open.size(), count));
  return open;
}

RandomTuner::RandomTuner(const TuningConfig& config, int group_size, Pool pool)
    : DeepspeedTuner("random", config, group_size, std::move(pool)) {}

std::vector<std::size_t> RandomTuner::choose(std::size_t count) {
  auto open = trials().open();
  std::vector<std::size_t> chosen;
  while (chosen.size() < count && !open.empty()) {
    chosen.push_back(take(open, random(trials().tried() + chosen.size()) % open.size()));
  }
  return chosen;
}

ModelBasedTuner::ModelBasedTuner(const TuningConfig& config, int group_size, Pool pool,
                                 std::unique_ptr<Forecaster> forecaster)
    : DeepspeedTuner("model_based", config, group_size, std::move(pool)),
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
    chosen.push_back(take(open, pick(trials().tried() + chosen.size(), open.size())));
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

std::unique_ptr<Tuner> make_gridsearch_tuner(const TunerParts& parts, Pool pool) {
  return std::make_unique<GridTuner>(parts.config, parts.group_size, std::move(pool));
}

std::unique_ptr<Tuner> make_random_tuner(const TunerParts& parts, Pool pool) {
  return std::make_unique<RandomTuner>(parts.config, parts.group_size, std::move(pool));
}

std::unique_ptr<Tuner> make_model_based_tuner(const TunerParts& parts, Pool pool) {
  return std::make_unique<ModelBasedTuner>(parts.config, parts.group_size, std::move(pool),
                                           parts.make_forecaster());
}

}  // namespace dstune
