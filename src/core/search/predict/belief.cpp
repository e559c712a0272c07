#include "core/search/predict/belief.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/linear_algebra.hpp"

namespace dstune {
namespace {

constexpr double kValueSd = 0.06;
constexpr double kCombinationSd = 0.04;
constexpr double kOwnSd = 0.004;
constexpr double kLeastVariance = 1e-18;  // what rounding leaves of none
// How much of a combination's residual is left where one setting differs altogether.
constexpr double kKept = 0.6;
// What is tried for the noise between measurements, and for the variance of residuals.
constexpr double kUsualNoise = 0.01;
constexpr std::array kNoises{0.003, 0.01, 0.03, 0.1};
constexpr std::array kScales{1.0, 4.0};
// The weight of what is usual: a factor of e is one standard deviation.
constexpr double kLogSpread = 1.0;

using Rows = std::vector<std::vector<double>>;

std::vector<double> solve_lower(const Rows& lower, std::vector<double> right) {
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) right[i] -= lower[i][k] * right[k];
    right[i] /= lower[i][i];
  }
  return right;
}

double square(double x) { return x * x; }

}  // namespace

Belief::Belief(Likeness likeness) : likeness_(std::move(likeness)) {}

void Belief::set_physics(std::vector<PhysicsGuess> physics) {
  physics_ = std::move(physics);
  refresh();
}

void Belief::tell(std::size_t configuration, double log_time, double noise_sd) {
  told_.push_back({configuration, log_time, noise_sd});
  std::vector<double> row(likeness_.configurations());
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = residual_covariance(configuration, i);
  residuals_.push_back(std::move(row));
}

double Belief::physics_covariance(std::size_t a, std::size_t b) const {
  double sum = a == b ? square(physics_[a].own_sd) : 0;
  for (std::size_t i = 0; i < physics_[a].directions.size(); ++i) {
    sum += physics_[a].directions[i] * physics_[b].directions[i];
  }
  return sum;
}

double Belief::residual_covariance(std::size_t a, std::size_t b) const {
  double values = 0;
  double combination = 1;
  for (std::size_t setting = 0; setting < likeness_.settings(); ++setting) {
    const double alike = likeness_.in_setting(setting, a, b);
    values += alike;
    combination *= kKept + (1 - kKept) * alike;
  }
  return square(kValueSd) * values + square(kCombinationSd) * combination +
         (a == b ? square(kOwnSd) : 0);
}

double Belief::prior(std::size_t a, std::size_t b) const {
  return physics_covariance(a, b) + scale_ * residual_covariance(a, b);
}

// Takes the pair that makes the measurements most probable, weighted by what is usual.
void Belief::choose() {
  const std::size_t count = told_.size();
  Rows physics(count, std::vector<double>(count));
  std::vector<double> surprises;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t a = told_[i].configuration;
    surprises.push_back(told_[i].log_time - physics_[a].log_time);
    for (std::size_t j = 0; j <= i; ++j) {
      physics[i][j] = physics_covariance(a, told_[j].configuration);
    }
  }
  double best = -std::numeric_limits<double>::infinity();
  for (const double noise : kNoises) {
    for (const double scale : kScales) {
      Rows lower = physics;
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
          lower[i][j] += scale * residuals_[i][told_[j].configuration];
        }
        lower[i][i] += square(noise) + square(told_[i].noise_sd);
      }
      decompose(lower, kLeastVariance);
      const auto solved = solve_lower(lower, surprises);
      double score = -square(std::log(noise / kUsualNoise) / kLogSpread) / 2 -
                     square(std::log(scale) / 2 / kLogSpread) / 2;
      for (std::size_t i = 0; i < count; ++i) {
        score -= square(solved[i]) / 2 + std::log(lower[i][i]);
      }
      if (score <= best) continue;
      best = score;
      noise_between_ = noise;
      scale_ = scale;
    }
  }
}

void Belief::refresh() {
  const std::size_t size = likeness_.configurations();
  choose();
  Rows lower;
  std::vector<double> surprises;
  solved_.clear();
  means_.resize(size);
  variances_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    means_[i] = physics_[i].log_time;
    variances_[i] = prior(i, i);
  }
  for (std::size_t row = 0; row < told_.size(); ++row) {
    const std::size_t own = told_[row].configuration;
    std::vector<double> line;
    for (std::size_t k = 0; k < row; ++k) line.push_back(solved_[k][own]);
    double left = prior(own, own) + square(noise_between_) + square(told_[row].noise_sd);
    double surprise = told_[row].log_time - physics_[own].log_time;
    for (std::size_t k = 0; k < row; ++k) {
      left -= square(line[k]);
      surprise -= line[k] * surprises[k];
    }
    const double diagonal = std::sqrt(std::fmax(left, kLeastVariance));
    surprises.push_back(surprise / diagonal);
    std::vector<double> solved(size);
    for (std::size_t i = 0; i < size; ++i) {
      solved[i] = physics_covariance(own, i) + scale_ * residuals_[row][i];
    }
    for (std::size_t k = 0; k < row; ++k) {
      for (std::size_t i = 0; i < size; ++i) solved[i] -= line[k] * solved_[k][i];
    }
    for (std::size_t i = 0; i < size; ++i) {
      solved[i] /= diagonal;
      means_[i] += solved[i] * surprises[row];
      variances_[i] -= square(solved[i]);
    }
    solved_.push_back(std::move(solved));
  }
}

double Belief::covariance(std::size_t a, std::size_t b) const {
  double sum = prior(a, b);
  for (const auto& row : solved_) sum -= row[a] * row[b];
  return sum;
}

}  // namespace dstune
