#include "core/search/tuners/compare/score.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dstune {

double score(Metric metric, const Measured& measured) {
  switch (metric) {
    case Metric::throughput:
      return measured.samples_per_s;
    case Metric::latency:
      return -typical_step_time(measured);
    case Metric::tokens:
      return measured.tokens_per_s;
    case Metric::flops:
      return measured.flops_per_s_per_rank;
  }
  return 0;
}

double relative_gain(double challenger, double incumbent) {
  if (challenger == incumbent) return 0;
  if (incumbent == 0) return std::copysign(std::numeric_limits<double>::infinity(), challenger);
  return (challenger - incumbent) / std::abs(incumbent);
}

double noise_threshold(const Measured& a, const Measured& b) {
  constexpr double kLeast = 0.01;
  constexpr double kMost = 0.05;
  constexpr double kInside95 = 1.96;
  const double noise = kInside95 * std::hypot(relative_error(a), relative_error(b));
  return std::clamp(noise, kLeast, kMost);
}

bool is_clearly_better(Metric metric, const Measured& challenger, const Measured& incumbent) {
  const double gain = relative_gain(score(metric, challenger), score(metric, incumbent));
  return gain > noise_threshold(challenger, incumbent);
}

}  // namespace dstune
