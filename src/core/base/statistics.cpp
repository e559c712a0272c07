#include "core/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace dstune {
namespace {

double mean_of(const double* begin, const double* end) {
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

/// The sum of squared deviations from the mean.
double squares_of(const double* begin, const double* end) {
  const double mean = mean_of(begin, end);
  return std::accumulate(begin, end, 0.0, [&](double sum, double sample) {
    return sum + (sample - mean) * (sample - mean);
  });
}

double squares_of(const std::vector<double>& samples) {
  return squares_of(samples.data(), samples.data() + samples.size());
}

/// See Summary::independent. Neighbours that differ more than others do not make more of them.
double independent_of(const std::vector<double>& samples, double squares) {
  const auto count = static_cast<double>(samples.size());
  if (!(squares > 0)) return count;
  const double mean = mean_of(samples.data(), samples.data() + samples.size());
  double products = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    products += (samples[i] - mean) * (samples[i - 1] - mean);
  }
  const double correlation = std::clamp(products / squares, 0.0, 1.0);
  return std::max(std::min(count, 2.0), count * (1 - correlation) / (1 + correlation));
}

double median_of_sorted(const std::vector<double>& samples) {
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : 0.5 * (samples[middle - 1] + samples[middle]);
}

}  // namespace

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("summarize: no samples");
  const auto count = static_cast<double>(samples.size());
  const double mean = mean_of(samples.data(), samples.data() + samples.size());
  const double squares = squares_of(samples);
  Summary summary;
  summary.independent = independent_of(samples, squares);
  if (count > 1 && mean > 0) summary.noise_percent = 100 * std::sqrt(squares / (count - 1)) / mean;
  std::sort(samples.begin(), samples.end());
  summary.median = median_of_sorted(samples);
  summary.min = samples.front();
  summary.max = samples.back();
  return summary;
}

double error_of_mean(double spread, int count, double independent) {
  if (count < 2 || !(independent > 1)) return spread;
  // Correlated samples scatter less about their own mean than about the true one.
  const double hidden = (1 - 1.0 / count) / (1 - 1 / independent);
  return spread * std::sqrt(hidden / independent);
}

double percentile(std::vector<double> samples, double part) {
  if (samples.empty()) throw std::invalid_argument("percentile: no samples");
  const auto count = static_cast<double>(samples.size());
  const auto place = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(part * count), 1.0, count));
  std::nth_element(samples.begin(), samples.begin() + (place - 1), samples.end());
  return samples[static_cast<std::size_t>(place - 1)];
}

Spread pooled_spread(const std::vector<std::vector<double>>& groups) {
  double squares = 0;
  int freedom = 0;
  for (const auto& group : groups) {
    if (group.empty()) continue;
    squares += squares_of(group);
    freedom += static_cast<int>(group.size()) - 1;
  }
  return {freedom > 0 ? std::sqrt(squares / freedom) : 0, freedom};
}

double student_chance_outside(double t, int freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double cosine2 = std::cos(angle) * std::cos(angle);
  const bool is_odd = freedom % 2 == 1;
  double term = is_odd ? std::cos(angle) : 1;
  double sum = 0;
  for (int i = is_odd ? 1 : 0; i + 1 < freedom; i += 2) {
    sum += term;
    term *= cosine2 * (i + 1) / (i + 2);
  }
  const double within = std::sin(angle) * sum;
  return is_odd ? 1 - (angle + within) * 2 / std::numbers::pi : 1 - within;
}

double student_quantile(double chance, int freedom) {
  double low = 0;
  double high = 1;
  while (student_chance_outside(high, freedom) > chance) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_chance_outside(middle, freedom) > chance ? low : high) = middle;
  }
  return high;
}

std::optional<SlowPart> slow_part(std::vector<double> samples) {
  constexpr std::size_t kFewest = 6;
  constexpr double kLeastGap = 0.05;
  const std::size_t count = samples.size();
  if (count < kFewest) return std::nullopt;
  const auto number = static_cast<double>(count);
  const double needed = 2 + 260 / (number * number);
  std::sort(samples.begin(), samples.end());
  const double* const begin = samples.data();
  const double* const end = begin + count;
  std::optional<SlowPart> found;
  double widest = kLeastGap * median_of_sorted(samples);
  // Few gaps are wide, so that the sums, which go over all samples, are seldom needed.
  for (const double* split = begin + std::max<std::size_t>(2, count / 4); split < end; ++split) {
    const double gap = *split - *(split - 1);
    if (gap <= widest) continue;
    const double squares = squares_of(begin, split) + squares_of(split, end);
    if (gap <= needed * std::sqrt(squares / (number - 2))) continue;
    widest = gap;
    found = {static_cast<int>(end - split), mean_of(split, end) / mean_of(begin, split) - 1};
  }
  return found;
}

}  // namespace dstune
