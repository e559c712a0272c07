// What is believed of the times of many steps at once: physics, and residuals that alike
// configurations share.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/search/predict/likeness.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// The logarithm of a step's time by physics alone. Its errors are independent standard normal
/// numbers, one for each direction, which all steps share.
struct PhysicsGuess {
  double log_time = 0;  ///< of seconds
  /// By an error: what an error of 1 adds to log_time. There is one error per part's rate, and one
  /// that all rates have in common.
  std::array<double, kStepParts + 1> directions{};
  double own_sd = 0;  ///< the standard deviation of an error that no other step shares
};

/// A Gaussian process over the logarithms of steps' times (Rasmussen and Williams, "Gaussian
/// Processes for Machine Learning", 2006, chapter 2). Its mean is physics; its covariance is the
/// sum of
///
/// - what the shared errors of physics make,
/// - a residual of each setting's value (6 %): two configurations share it as far as they are
///   alike in that setting, so that a value that was never measured is not known, whatever is known
///   of its twins,
/// - a residual of combinations (4 %), shared the less the more settings differ,
/// - a residual of each configuration's own (0.4 %).
///
/// All of these sizes are doubled, and the noise between measurements is chosen, where that makes
/// what was measured more probable; they are never made smaller, because a search sees few settings
/// moved and must not conclude that the others do nothing.
///
/// Deterministic. With n measurements and N configurations a refresh takes n^2 N multiplications.
class Belief {
 public:
  explicit Belief(Likeness likeness);

  /// Replaces what physics says, in the order of the configurations, and makes all that was told
  /// count.
  void set_physics(std::vector<PhysicsGuess> physics);
  /// @param noise_sd  the standard deviation of log_time as far as the measurement itself shows it
  void tell(std::size_t configuration, double log_time, double noise_sd);

  double mean(std::size_t configuration) const { return means_[configuration]; }
  double variance(std::size_t configuration) const { return variances_[configuration]; }
  double covariance(std::size_t a, std::size_t b) const;
  /// The standard deviation between measurements of one configuration, besides what each shows.
  double noise_between() const { return noise_between_; }
  std::size_t told() const { return told_.size(); }

 private:
  struct Told {
    std::size_t configuration = 0;
    double log_time = 0;
    double noise_sd = 0;
  };
  using Rows = std::vector<std::vector<double>>;

  double prior(std::size_t a, std::size_t b) const;
  double physics_covariance(std::size_t a, std::size_t b) const;
  double residual_covariance(std::size_t a, std::size_t b) const;
  void refresh();
  void choose();

  Likeness likeness_;
  std::vector<PhysicsGuess> physics_;
  std::vector<Told> told_;
  Rows residuals_;    ///< by measurement: residual_covariance() with each configuration
  double scale_ = 1;  ///< the variance of residuals, relative to what is usual
  double noise_between_ = 0;
  Rows solved_;  ///< L^-1 k, by measurement and configuration, where L L^T is the covariance of
                 ///< the measurements and k that of measurements and configurations
  std::vector<double> means_;
  std::vector<double> variances_;
};

}  // namespace dstune
