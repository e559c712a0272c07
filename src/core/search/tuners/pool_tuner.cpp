#include "core/search/tuners/pool_tuner.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {
namespace {

// splitmix64, which gives the same numbers with every compiler, unlike the standard's
// distributions.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace

PoolTuner::PoolTuner(std::string_view name, const TuningConfig& config, int group_size, Pool pool)
    : name_(name),
      config_(config),
      group_size_(group_size),
      trials_(std::move(pool), config.autotuning.metric) {}

std::vector<Candidate> PoolTuner::next(int free_groups) {
  std::vector<Candidate> candidates;
  if (!why_over().empty()) return candidates;
  const auto most = static_cast<std::size_t>(config_.autotuning.tuner_num_trials);
  const auto count = std::min(static_cast<std::size_t>(free_groups), most - trials_.tried());
  for (const std::size_t index : choose(count)) {
    candidates.push_back(trials_.at(index).candidate);
    candidates.back().give_up_above = give_up_above(index);
  }
  return candidates;
}

void PoolTuner::learn(const Record& record) {
  trials_.learn(record);
  take_in(record);
}

std::optional<Record> PoolTuner::best() {
  const auto best = trials_.best();
  return best ? std::optional(trials_.record(*best)) : std::nullopt;
}

std::optional<int> PoolTuner::still_to_come() {
  if (!why_over().empty()) return 0;
  const auto most = static_cast<std::size_t>(config_.autotuning.tuner_num_trials);
  return static_cast<int>(std::min(trials_.size(), most) - std::min(trials_.tried(), most));
}

std::string PoolTuner::end() const { return ""; }

std::string PoolTuner::why_over() const {
  const auto most = config_.autotuning.tuner_num_trials;
  if (trials_.tried() >= static_cast<std::size_t>(std::max(most, 0))) {
    return concat("tuner_num_trials is ", most);
  }
  return end();
}

std::vector<std::string> PoolTuner::remarks() {
  if (trials_.tried() == trials_.size()) {
    return {concat(name_, " tried all ", trials_.size(), " configurations")};
  }
  const std::string why = why_over();
  return {concat(name_, " tried ", trials_.tried(), " of ", trials_.size(), " configurations",
                 why.empty() ? "" : ": ", why)};
}

Experiment PoolTuner::experiment(std::size_t index) const {
  return make_experiment(config_, group_size_, trials_.at(index).candidate);
}

std::int64_t PoolTuner::samples(std::size_t index) const {
  const Point& point = trials_.at(index).point;
  const std::int64_t count = point.micro_batch * point.accumulation_steps * group_size_;
  if (metric() != Metric::tokens) return count;
  return amount_of(metric(), count, experiment(index).settings);
}

std::uint64_t PoolTuner::random(std::size_t trial) const {
  return mixed(mixed(config_.settings.seed) + trial);
}

}  // namespace dstune
