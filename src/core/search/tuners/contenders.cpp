#include "core/search/tuners/contenders.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <variant>

#include "core/search/predict/chances.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune {

double Contender::mean() const {
  return std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(speeds.size());
}

std::vector<Contender> choose_contenders(const std::vector<Record>& records, Metric metric,
                                         double window, std::size_t most) {
  const auto score_of = [&](const Contender& contender) {
    return score(metric, std::get<Measured>(contender.record.outcome)) * contender.record.slowed;
  };
  std::vector<Contender> all;
  for (const Record& record : records) {
    if (std::holds_alternative<Measured>(record.outcome)) all.push_back({record, {}});
  }
  std::ranges::stable_sort(all, std::greater<>(), score_of);
  std::size_t count = std::min<std::size_t>(all.size(), 2);
  while (count < std::min(all.size(), most) &&
         relative_gain(score_of(all[count]), score_of(all[0])) > -window) {
    ++count;
  }
  all.resize(std::min(count, most));
  return all;
}

bool overlaps_another(const Record& record, const std::vector<Record>& records) {
  return std::ranges::any_of(records, [&](const Record& other) {
    return other.started < record.finished && record.started < other.finished &&
           other.experiment.name != record.experiment.name;
  });
}

std::vector<Contender> choose_finalists(std::vector<Record> stage_bests,
                                        const std::vector<Record>& records) {
  const bool disturbed = std::ranges::any_of(
      stage_bests, [&](const Record& record) { return overlaps_another(record, records); });
  std::vector<Contender> finalists;
  if (!disturbed) return finalists;
  for (Record& record : stage_bests) finalists.push_back({std::move(record), {}});
  return finalists;
}

namespace {

/// The deviations of the contenders' repetitions from their means: the sum of squares, and the
/// degrees of freedom.
struct Deviations {
  double squares = 0;
  double freedom = 0;
};

Deviations deviations_of(const std::vector<Contender>& contenders) {
  Deviations all;
  for (const Contender& contender : contenders) {
    if (contender.speeds.empty()) continue;
    const double mean = contender.mean();
    for (const double speed : contender.speeds) all.squares += (speed - mean) * (speed - mean);
    all.freedom += static_cast<double>(contender.speeds.size() - 1);
  }
  return all;
}

}  // namespace

double repetition_noise(const std::vector<Contender>& contenders) {
  constexpr double kUsual = 0.01;
  constexpr double kWeight = 2;
  const Deviations seen = deviations_of(contenders);
  return std::sqrt((seen.squares + kWeight * kUsual * kUsual) / (seen.freedom + kWeight));
}

std::optional<double> measured_spread(const std::vector<Contender>& contenders) {
  const Deviations seen = deviations_of(contenders);
  return seen.freedom > 0 ? std::optional(std::sqrt(seen.squares / seen.freedom)) : std::nullopt;
}

double standard_error(const Contender& a, const Contender& b, double noise) {
  return noise * std::sqrt(1 / static_cast<double>(a.speeds.size()) +
                           1 / static_cast<double>(b.speeds.size()));
}

double chance_of_being_faster(const Contender& a, const Contender& b, double noise) {
  return Guess{a.mean() - b.mean(), standard_error(a, b, noise)}.chance_above(0);
}

}  // namespace dstune
