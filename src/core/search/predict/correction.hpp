// A correction of the predicted step time by measurements: coefficients for the parts of a step's
// time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "core/base/linear_algebra.hpp"
#include "core/search/predict/belief.hpp"
#include "core/search/predict/quality.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// A measured step, and the time that physics predicts for it.
struct Observation {
  StepTime dry;
  Seconds measured = 0;
  double relative_noise = 0;  ///< the relative standard deviation of `measured`
  int group = 0;              ///< measurements of the same step have the same group
};

/// A prediction with a relative standard deviation.
struct Estimate {
  Seconds time = 0;
  double relative_sd = 0;
};

/// time = sum of coefficient * part, coefficients >= 0. Bayesian ridge regression of relative
/// residuals: coefficients are normal about one common factor (the median of measured / dry), the
/// spread of coefficients and of residuals are those of a grid that predict each measurement best
/// from the others. Deterministic.
class Correction {
 public:
  /// Takes milliseconds for 50 observations, and in proportion for more. Without observations it
  /// leaves the physics as it is.
  /// @param spread  the relative spread of the times of a step on different groups
  explicit Correction(const std::vector<Observation>& observations, double spread = 0);

  Estimate estimate(const StepTime& dry) const;
  /// The logarithm of the step's time as it is known before the observations, but about the fit: a
  /// linear function of the coefficients, each of which has its prior.
  PhysicsGuess physics(const StepTime& dry) const;

  /// By observation: the estimate from all observations but those of its group.
  const std::vector<Estimate>& left_out() const noexcept { return left_out_; }
  const PredictorQuality& quality() const noexcept { return quality_; }
  /// By part: the factor of the dry time; for the constant part, seconds.
  const RealVector<kStepParts>& coefficients() const noexcept { return fit_.coefficients; }
  /// How many observations were looked at to make this correction: each a few times, however many
  /// there are.
  std::size_t rows_visited() const noexcept { return rows_visited_; }

 private:
  using Vector = RealVector<kStepParts>;
  using Square = SquareMatrix<kStepParts>;

  /// The relative standard deviations that the grid chooses.
  struct Spread {
    double residual = 0;
    double coefficients = 0;
  };
  struct Row {
    Vector parts{};         ///< parts of the dry time, divided by the measured time
    double ratio = 0;       ///< measured / dry
    double noise2 = 0;      ///< the variance of the measurement
    std::size_t place = 0;  ///< the place of the ratio among all ratios, sorted
  };
  struct Prior {
    Vector mean{};
    Square precision{};
    double log_determinant = 0;  ///< that of the precision matrix
  };
  struct Fit {
    Vector coefficients{};
    std::optional<Cholesky<kStepParts>> precision;  ///< the precision matrix of the coefficients
  };

  /// The sums over rows of weight * parts * parts^T and of weight * parts.
  struct Sums {
    Square matrix{};
    Vector right{};

    void add(const Vector& parts, double weight);
  };

  void sort_ratios();
  /// The median ratio of all rows but `rows`; 1 if there are no others.
  double common_factor_without(const std::vector<std::size_t>& rows) const;
  double weight_of(const Row& row, double residual) const;
  Sums sums_of(double residual) const;
  Prior prior(double factor, double spread) const;
  Fit fit(const Sums& sums, double factor) const;
  double evidence(const Sums& sums, const Prior& before) const;
  void choose_spread(double usual_residual);
  Estimate estimate(const Fit& fit, const StepTime& dry) const;
  void leave_out(const std::vector<Observation>& observations);

  double unknown_;  ///< the relative spread of a step's time before a measurement
  std::vector<Row> rows_;
  std::map<int, std::vector<std::size_t>> groups_;  ///< the rows of each group
  std::vector<double> sorted_ratios_;
  mutable std::size_t rows_visited_ = 0;
  Seconds typical_ = 1;
  double noise2_ = 0;  ///< the median variance of a measurement
  Spread spread_;
  double residual2_ = 0;  ///< the variance about the fit, without that of the measurements' noise
  Fit fit_;
  std::vector<Estimate> left_out_;
  PredictorQuality quality_;
};

}  // namespace dstune
