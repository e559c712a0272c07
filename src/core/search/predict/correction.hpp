// What measurements say about the physics: coefficients for the parts of a step's time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "core/base/linear_algebra.hpp"
#include "core/search/predict/quality.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// A measured step, and what physics says of it.
struct Observation {
  StepTime dry;
  Seconds measured = 0;
  double relative_noise = 0;  ///< standard deviation of `measured`, relative
  int group = 0;              ///< measurements of the same step have the same
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
  /// Milliseconds for 50 observations, in proportion for more; none: the physics as it is.
  /// @param spread  relative, of the groups that may measure a step
  explicit Correction(const std::vector<Observation>& observations, double spread = 0);

  Estimate estimate(const StepTime& dry) const;

  /// By observation: the estimate from all observations but those of its group.
  const std::vector<Estimate>& left_out() const noexcept { return left_out_; }
  const PredictorQuality& quality() const noexcept { return quality_; }
  /// By part: what dry time is multiplied with; the constant's, seconds.
  const RealVector<kStepParts>& coefficients() const noexcept { return fit_.coefficients; }
  /// How often an observation was looked at to make it: a few times each, however many there are.
  std::size_t rows_visited() const noexcept { return rows_visited_; }

 private:
  using Vector = RealVector<kStepParts>;
  using Square = SquareMatrix<kStepParts>;

  /// Standard deviations, relative, that the grid chooses.
  struct Spread {
    double residual = 0;
    double coefficients = 0;
  };
  struct Row {
    Vector parts{};         ///< of the dry time, over the measured one
    double ratio = 0;       ///< measured / dry
    double noise2 = 0;      ///< variance
    std::size_t place = 0;  ///< of the ratio among all, sorted
  };
  struct Prior {
    Vector mean{};
    Square precision{};
    double log_determinant = 0;  ///< of the precision
  };
  struct Fit {
    Vector coefficients{};
    std::optional<Cholesky<kStepParts>> precision;  ///< of the coefficients
  };

  /// Over rows: weight * parts * parts^T, and weight * parts.
  struct Sums {
    Square matrix{};
    Vector right{};

    void add(const Vector& parts, double weight);
  };

  void sort_ratios();
  /// The median ratio of all rows but these; 1 if there are no others.
  double common_factor_without(const std::vector<std::size_t>& rows) const;
  double weight_of(const Row& row, double residual) const;
  Sums sums_of(double residual) const;
  Prior prior(double factor, double spread) const;
  Fit fit(const Sums& sums, double factor) const;
  double evidence(const Sums& sums, const Prior& before) const;
  void choose_spread(double usual_residual);
  Estimate estimate(const Fit& fit, const StepTime& dry) const;
  void leave_out(const std::vector<Observation>& observations);

  double unknown_;  ///< how little is known of a step before a measurement
  std::vector<Row> rows_;
  std::map<int, std::vector<std::size_t>> groups_;  ///< their rows
  std::vector<double> sorted_ratios_;
  mutable std::size_t rows_visited_ = 0;
  Seconds typical_ = 1;
  double noise2_ = 0;  ///< median variance of a measurement
  Spread spread_;
  double residual2_ = 0;  ///< variance about the fit, noise aside
  Fit fit_;
  std::vector<Estimate> left_out_;
  PredictorQuality quality_;
};

}  // namespace dstune
