#include "core/search/predict/correction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/base/statistics.hpp"

namespace dstune {
namespace {

constexpr std::size_t kConstant = index_of(StepPart::constant);

// What the rates may be wrong by all together, and each beside the others.
constexpr double kCommonSpread = 0.3;
constexpr std::array kCoefficientSpreads{0.05, 0.1, 0.2, 0.4, 0.8};
constexpr std::array kResidualSpreads{0.002, 0.005, 0.01, 0.02, 0.03, 0.05,
                                      0.08,  0.12,  0.2,  0.3,  0.5};
// Before there is data: within a factor of e of 6 %.
constexpr double kUsualResidual = 0.06;
constexpr double kUsualCoefficients = 0.3;
// The constant, beside a typical step.
constexpr double kConstantSpread = 0.02;
// Before a measurement nobody knows how fast the machine is.
constexpr double kUnknown = 0.7;

double median(std::vector<double> values) { return summarize(std::move(values)).median; }

double log_normal(double value, double center) {
  const double z = std::log(value / center);
  return -z * z / 2;
}

constexpr auto kAll = [](std::size_t) { return true; };

}  // namespace

Correction::Correction(const std::vector<Observation>& observations) {
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
    for (std::size_t i = 0; i < kStepParts; ++i) row.parts[i] = seen.dry.parts[i] / seen.measured;
    row.parts[kConstant] = 1 / seen.measured;
    rows_.push_back(row);
    groups_.push_back(seen.group);
  }
  choose_spread();
  fit_ = fit(spread_, kAll);
  leave_out(observations);
}

template <class Keep>
double Correction::common_factor(Keep keep) const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (keep(i)) ratios.push_back(rows_[i].ratio);
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

// Covariance factor^2 (spread^2 I + kCommonSpread^2 1 1^T), inverted by Sherman and Morrison.
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

template <class Keep>
Correction::Fit Correction::fit(const Spread& spread, Keep keep) const {
  const Prior before = prior(common_factor(keep), spread.coefficients);
  Square matrix = before.precision;
  Vector right{};
  for (std::size_t i = 0; i < kStepParts; ++i) right[i] = dot(before.precision[i], before.mean);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (!keep(row)) continue;
    const Vector& parts = rows_[row].parts;
    const double weight = 1 / (spread.residual * spread.residual + rows_[row].noise2);
    for (std::size_t i = 0; i < kStepParts; ++i) {
      right[i] += weight * parts[i];
      for (std::size_t j = 0; j < kStepParts; ++j) matrix[i][j] += weight * parts[i] * parts[j];
    }
  }
  Fit result{.precision = Cholesky(matrix)};
  result.coefficients = least_non_negative(matrix, right, result.precision->solve(right));
  return result;
}

// log p(measurements | spread), coefficients of all values counted.
double Correction::evidence(const Spread& spread, double factor) const {
  const Prior before = prior(factor, spread.coefficients);
  Square matrix = before.precision;
  Vector right{};
  double sum = before.log_determinant;
  for (const Row& row : rows_) {
    const double weight = 1 / (spread.residual * spread.residual + row.noise2);
    const double residual = 1 - dot(row.parts, before.mean);
    sum += std::log(weight / (2 * std::numbers::pi)) - weight * residual * residual;
    for (std::size_t i = 0; i < kStepParts; ++i) {
      right[i] += weight * residual * row.parts[i];
      for (std::size_t j = 0; j <= i; ++j) matrix[i][j] += weight * row.parts[i] * row.parts[j];
    }
  }
  const Cholesky after(matrix);
  return (sum - after.log_determinant() + after.inverse_form(right)) / 2;
}

// The most probable pair is fitted with; what a new measurement may scatter by is the mean over all
// pairs, since few measurements leave much open.
void Correction::choose_spread() {
  const double factor = common_factor(kAll);
  std::vector<Spread> spreads;
  std::vector<double> scores;
  for (const double residual : kResidualSpreads) {
    for (const double coefficients : kCoefficientSpreads) {
      const Spread& spread = spreads.emplace_back(Spread{residual, coefficients});
      scores.push_back(evidence(spread, factor) + log_normal(residual, kUsualResidual) +
                       log_normal(coefficients, kUsualCoefficients));
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
  if (rows_.empty()) return {dry.total(), kUnknown};
  Estimate result = estimate(fit_, dry);
  result.relative_sd *= quality_.widening;
  return result;
}

void Correction::leave_out(const std::vector<Observation>& observations) {
  std::vector<double> surprises;
  std::vector<double> predicted;
  std::vector<double> measured;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const auto is_other = [&](std::size_t row) { return groups_[row] != groups_[i]; };
    const Estimate& estimate =
        left_out_.emplace_back(this->estimate(fit(spread_, is_other), observations[i].dry));
    predicted.push_back(estimate.time);
    measured.push_back(observations[i].measured);
    surprises.push_back(std::fabs(std::log(observations[i].measured / estimate.time)) /
                        estimate.relative_sd);
  }
  quality_ = summarize_quality(predicted, measured, surprises);
  for (Estimate& estimate : left_out_) estimate.relative_sd *= quality_.widening;
}

}  // namespace dstune
