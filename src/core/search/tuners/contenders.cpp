#include "core/search/tuners/contenders.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <utility>
#include <variant>

#include "core/search/predict/chances.hpp"
#include "core/search/tuners/compare/score.hpp"
#include "core/search/tuners/compare/tie_rule.hpp"

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
    if (std::holds_alternative<Measured>(record.outcome)) all.push_back({record});
  }
  std::ranges::stable_sort(all, [&](const Contender& a, const Contender& b) {
    if (score_of(a) != score_of(b)) return score_of(a) > score_of(b);
    return simplicity_of(a.record, 0) < simplicity_of(b.record, 0);
  });
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
  for (Record& record : stage_bests) finalists.push_back({std::move(record)});
  return finalists;
}

namespace {

constexpr int kLooks[] = {2, 3, 4, kMostRepetitions};
constexpr double kFalseAlarmOfAny = 0.05;

std::vector<std::vector<double>> speeds_of(const std::vector<Contender>& contenders) {
  std::vector<std::vector<double>> speeds;
  speeds.reserve(contenders.size());
  for (const Contender& contender : contenders) speeds.push_back(contender.speeds);
  return speeds;
}

/// What each first measurement differs by from its repetitions, in units of which a repetition's
/// noise is the standard deviation.
std::vector<double> first_residuals(const std::vector<Contender>& contenders) {
  std::vector<double> residuals;
  for (const Contender& contender : contenders) {
    if (!contender.first || contender.speeds.empty()) continue;
    const auto count = static_cast<double>(contender.speeds.size());
    residuals.push_back((*contender.first - contender.mean()) / std::sqrt(1 + 1 / count));
  }
  return residuals;
}

/// What the steps of the last repetition of each say.
double error_within_runs(const std::vector<Contender>& contenders) {
  std::vector<const Measured*> last;
  for (const Contender& contender : contenders) {
    if (contender.last) last.push_back(&*contender.last);
  }
  return relative_error(last);
}

double per_repetition(const Contender& a, const Contender& b) {
  return 1 / static_cast<double>(a.speeds.size()) + 1 / static_cast<double>(b.speeds.size());
}

}  // namespace

Spread run_to_run(const std::vector<Contender>& contenders) {
  const Spread repeated = pooled_spread(speeds_of(contenders));
  // One first measurement that was disturbed is not to hide what repetitions agree on.
  constexpr double kMostOfFirst = 3;
  Spread first = pooled_spread({first_residuals(contenders)});
  if (repeated.freedom > 0) first.sd = std::min(first.sd, kMostOfFirst * repeated.sd);
  const int freedom = repeated.freedom + first.freedom;
  const double squares =
      repeated.sd * repeated.sd * repeated.freedom + first.sd * first.sd * first.freedom;
  const double seen = freedom == 0 ? 0 : std::sqrt(squares / freedom);
  return {std::max(seen, error_within_runs(contenders)), freedom};
}

std::optional<double> measured_spread(const std::vector<Contender>& contenders) {
  const Spread seen = pooled_spread(speeds_of(contenders));
  return seen.freedom > 0 ? std::optional(seen.sd) : std::nullopt;
}

double standard_error(const Contender& a, const Contender& b, double noise) {
  return noise * std::sqrt(per_repetition(a, b));
}

bool is_look(int repetitions) { return std::ranges::find(kLooks, repetitions) != std::end(kLooks); }

double chance_of_a_look(std::size_t count) {
  const std::size_t pairs = count * (count - 1) / 2;
  return kFalseAlarmOfAny /
         static_cast<double>(std::size(kLooks) * std::max<std::size_t>(pairs, 1));
}

bool is_told_apart(const Contender& a, const Contender& b, const Spread& noise, double chance) {
  constexpr double kRounding = 1e-9;
  const double difference = a.mean() - b.mean();
  if (noise.freedom < 1 || difference < kRounding) return false;
  return difference > student_quantile(chance, noise.freedom) * standard_error(a, b, noise.sd);
}

double expected_loss(const Contender& a, const Contender& b, double noise) {
  const double error = standard_error(a, b, noise);
  if (!(error > 0)) return 0;
  const double z = (a.mean() - b.mean()) / error;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return error * (density - z * normal_share_below(-z));
}

bool may_be_told_apart(const Contender& a, const Contender& b, const Spread& noise, double chance,
                       int left) {
  if (noise.freedom < 1) return true;
  const double difference = a.mean() - b.mean();
  const double error = standard_error(a, b, noise.sd);
  if (difference + student_quantile(chance, noise.freedom) * error < kMatters) return false;
  const int more = kMostRepetitions - static_cast<int>(std::min(a.speeds.size(), b.speeds.size()));
  const double at_end = noise.sd * std::sqrt(2.0 / kMostRepetitions);
  return difference + error > student_quantile(chance, noise.freedom + more * left) * at_end;
}

}  // namespace dstune
