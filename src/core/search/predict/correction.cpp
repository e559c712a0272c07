#include "core/search/predict/correction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/statistics.hpp"

namespace dstune {
namespace {

constexpr std::size_t kConstant = index_of(StepPart::constant);

// The relative spread of a factor that all rates have in common; below it the spreads that the grid
// tries for each part's own coefficient, and for the residuals.
constexpr double kCommonSpread = 0.3;
constexpr std::array kCoefficientSpreads{0.05, 0.1, 0.2, 0.4, 0.8};
constexpr std::array kResidualSpreads{0.002, 0.005, 0.01, 0.02, 0.03, 0.05,
                                      0.08,  0.12,  0.2,  0.3,  0.5};
// The prior of the spreads, before there is data: residuals are within a factor of e of 6 %.
constexpr double kUsualResidual = 0.06;
constexpr double kUsualCoefficients = 0.3;
// The spread of the constant, relative to a typical step.
constexpr double kConstantSpread = 0.02;
// The relative spread of a step's time before there is a measurement that tells how fast the
// machine is.
constexpr double kUnknown = 0.7;
// In physics(): the spread of a factor that all rates have in common, and the least that is
// believed of the spread of each part's own.
constexpr double kUnknownFactor = 1;
constexpr double kLeastCoefficients = 0.25;

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

// The median of `sorted` without the values at the places `left_out`, which are ascending.
double median_of_sorted(const std::vector<double>& sorted,
                        const std::vector<std::size_t>& left_out) {
  const std::size_t count = sorted.size() - left_out.size();
  const auto at = [&](std::size_t place) {
    for (const std::size_t missing : left_out) place += missing <= place ? 1U : 0U;
    return sorted[place];
  };
  const std::size_t middle = count / 2;
  return count % 2 == 1 ? at(middle) : 0.5 * (at(middle - 1) + at(middle));
}

double log_normal(double value, double center) {
  const double z = std::log(value / center);
  return -z * z / 2;
}

}  // namespace

Correction::Correction(const std::vector<Observation>& observations, double spread)
    : unknown_(std::hypot(kUnknown, spread)) {
  std::vector<double> times;
  std::vector<double> noises;
  for (const Observation& seen : observations) {
    times.push_back(seen.measured);
    noises.push_back(seen.relative_noise * seen.relative_noise);
  }
  if (!times.empty()) typical_ = median(times);
  if (!noises.empty()) noise2_ = median(noises);
  for (const Observation& seen : observations) {
    Row row{.ratio = seen.measured / seen.dry.total(),
            .noise2 = seen.relative_noise * seen.relative_noise};
    groups_[seen.group].push_back(rows_.size());
    for (std::size_t i = 0; i < kStepParts; ++i) row.parts[i] = seen.dry.parts[i] / seen.measured;
    row.parts[kConstant] = 1 / seen.measured;
    rows_.push_back(row);
  }
  sort_ratios();
  choose_spread(std::hypot(kUsualResidual, spread));
  fit_ = fit(sums_of(spread_.residual), common_factor_without({}));
  leave_out(observations);
}

void Correction::sort_ratios() {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [this](std::size_t row) { return rows_[row].ratio; });
  for (const std::size_t row : order) {
    rows_[row].place = sorted_ratios_.size();
    sorted_ratios_.push_back(rows_[row].ratio);
  }
}

double Correction::common_factor_without(const std::vector<std::size_t>& rows) const {
  rows_visited_ += rows.size();
  if (rows.size() == rows_.size()) return 1;
  std::vector<std::size_t> places;
  places.reserve(rows.size());
  for (const std::size_t row : rows) places.push_back(rows_[row].place);
  std::ranges::sort(places);
  return median_of_sorted(sorted_ratios_, places);
}

// The prior's covariance is factor^2 (spread^2 I + kCommonSpread^2 1 1^T), which the
// Sherman-Morrison formula inverts.
Correction::Prior Correction::prior(double factor, double spread) const {
  constexpr double kParts = kStepParts - 1;
  Prior prior;
  const double own = factor * factor * spread * spread;
  const double common = factor * factor * kCommonSpread * kCommonSpread;
  const double shared = common / (own * (own + kParts * common));
  for (std::size_t i = 0; i < kStepParts; ++i) {
    if (i == kConstant) continue;
    prior.mean[i] = factor;
    for (std::size_t j = 0; j < kStepParts; ++j) {
      if (j != kConstant) prior.precision[i][j] = (i == j ? 1 / own : 0) - shared;
    }
  }
  const double constant = kConstantSpread * kConstantSpread * typical_ * typical_;
  prior.precision[kConstant][kConstant] = 1 / constant;
  prior.log_determinant =
      -kParts * std::log(own) - std::log1p(kParts * common / own) - std::log(constant);
  return prior;
}

double Correction::weight_of(const Row& row, double residual) const {
  return 1 / (residual * residual + row.noise2);
}

void Correction::Sums::add(const Vector& parts, double weight) {
  for (std::size_t i = 0; i < kStepParts; ++i) {
    right[i] += weight * parts[i];
    for (std::size_t j = 0; j < kStepParts; ++j) matrix[i][j] += weight * parts[i] * parts[j];
  }
}

Correction::Sums Correction::sums_of(double residual) const {
  Sums sums;
  for (const Row& row : rows_) sums.add(row.parts, weight_of(row, residual));
  rows_visited_ += rows_.size();
  return sums;
}

Correction::Fit Correction::fit(const Sums& sums, double factor) const {
  const Prior before = prior(factor, spread_.coefficients);
  Square matrix = before.precision;
  Vector right{};
  for (std::size_t i = 0; i < kStepParts; ++i) {
    right[i] = sums.right[i] + dot(before.precision[i], before.mean);
    for (std::size_t j = 0; j < kStepParts; ++j) matrix[i][j] += sums.matrix[i][j];
  }
  Fit result{.precision = Cholesky(matrix)};
  result.coefficients = least_non_negative(matrix, right, result.precision->solve(right));
  return result;
}

// log p(measurements | spread) without the terms that `residual` alone decides, with coefficients
// of any sign.
double Correction::evidence(const Sums& sums, const Prior& before) const {
  Square matrix = before.precision;
  Vector right{};  // the right side, for the residuals that the prior's mean leaves
  double left = 0;
  for (std::size_t i = 0; i < kStepParts; ++i) {
    const double explained = dot(sums.matrix[i], before.mean);
    right[i] = sums.right[i] - explained;
    left += before.mean[i] * (explained - 2 * sums.right[i]);
    for (std::size_t j = 0; j < kStepParts; ++j) matrix[i][j] += sums.matrix[i][j];
  }
  const Cholesky after(matrix);
  return (before.log_determinant - after.log_determinant() - left + after.inverse_form(right)) / 2;
}

// The fit uses the most probable pair of spreads. The scatter of a new measurement is the mean over
// all pairs, since few measurements leave much open.
void Correction::choose_spread(double usual_residual) {
  const double factor = common_factor_without({});
  std::vector<Spread> spreads;
  std::vector<double> scores;
  for (const double residual : kResidualSpreads) {
    const Sums sums = sums_of(residual);
    double alone = log_normal(residual, usual_residual);
    for (const Row& row : rows_) {
      const double weight = weight_of(row, residual);
      alone += (std::log(weight) - weight) / 2;
    }
    for (const double coefficients : kCoefficientSpreads) {
      spreads.push_back({residual, coefficients});
      scores.push_back(alone + log_normal(coefficients, kUsualCoefficients) +
                       evidence(sums, prior(factor, coefficients)));
    }
  }
  const auto best = std::max_element(scores.begin(), scores.end());
  spread_ = spreads[static_cast<std::size_t>(best - scores.begin())];
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double probability = std::exp(scores[i] - *best);
    sum += probability;
    residual2_ += probability * spreads[i].residual * spreads[i].residual;
  }
  residual2_ /= sum;
}

Estimate Correction::estimate(const Fit& fit, const StepTime& dry) const {
  Vector parts = dry.parts;
  parts[kConstant] = 1;
  const Seconds time = dot(parts, fit.coefficients);
  for (double& part : parts) part /= time;
  const double fitted = fit.precision->inverse_form(parts);
  return {time, std::sqrt(fitted + residual2_ + noise2_)};
}

Estimate Correction::estimate(const StepTime& dry) const {
  if (rows_.empty()) return {dry.total(), unknown_};
  Estimate result = estimate(fit_, dry);
  result.relative_sd *= quality_.widening;
  return result;
}

PhysicsGuess Correction::physics(const StepTime& dry) const {
  const double factor = common_factor_without({});
  const double spread = std::max(spread_.coefficients, kLeastCoefficients);
  Vector parts = dry.parts;
  parts[kConstant] = 1;
  const Seconds time = dot(parts, fit_.coefficients);
  PhysicsGuess guess{.log_time = std::log(time)};
  double all = 0;
  for (std::size_t i = 0; i < kStepParts; ++i) {
    const double share = parts[i] / time;
    const bool is_constant = i == kConstant;
    guess.log_time += ((is_constant ? 0 : factor) - fit_.coefficients[i]) * share;
    guess.directions[i] = share * (is_constant ? kConstantSpread * typical_ : factor * spread);
    if (!is_constant) all += factor * share;
  }
  guess.directions[kStepParts] = kUnknownFactor * all;
  return guess;
}

// Makes one fit for each group without it, which the members of the group share, so that each row
// is looked at once.
void Correction::leave_out(const std::vector<Observation>& observations) {
  const Sums all = sums_of(spread_.residual);
  left_out_.resize(observations.size());
  for (const auto& [group, rows] : groups_) {
    Sums others = all;
    for (const std::size_t row : rows) {
      others.add(rows_[row].parts, -weight_of(rows_[row], spread_.residual));
    }
    rows_visited_ += rows.size();
    const Fit without = fit(others, common_factor_without(rows));
    for (const std::size_t row : rows) left_out_[row] = estimate(without, observations[row].dry);
  }
  std::vector<double> surprises;
  std::vector<double> predicted;
  std::vector<double> measured;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Estimate& estimate = left_out_[i];
    predicted.push_back(estimate.time);
    measured.push_back(observations[i].measured);
    surprises.push_back(std::fabs(std::log(observations[i].measured / estimate.time)) /
                        estimate.relative_sd);
  }
  quality_ = summarize_quality(predicted, measured, surprises);
  for (Estimate& estimate : left_out_) estimate.relative_sd *= quality_.widening;
}

}  // namespace dstune
