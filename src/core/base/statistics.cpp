#include "core/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace dstune {

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("summarize: no samples");
  std::sort(samples.begin(), samples.end());
  const std::size_t count = samples.size();
  const std::size_t middle = count / 2;
  Summary summary;
  summary.median = count % 2 == 1 ? samples[middle] : 0.5 * (samples[middle - 1] + samples[middle]);
  summary.min = samples.front();
  summary.max = samples.back();
  if (count < 2) return summary;
  const double mean =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(count);
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  if (mean > 0) {
    summary.noise_percent = 100 * std::sqrt(squares / static_cast<double>(count - 1)) / mean;
  }
  return summary;
}

double percentile(std::vector<double> samples, double part) {
  if (samples.empty()) throw std::invalid_argument("percentile: no samples");
  const auto count = static_cast<double>(samples.size());
  const auto place = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(part * count), 1.0, count));
  std::nth_element(samples.begin(), samples.begin() + (place - 1), samples.end());
  return samples[static_cast<std::size_t>(place - 1)];
}

}  // namespace dstune
