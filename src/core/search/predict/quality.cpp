#include "core/search/predict/quality.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "core/base/statistics.hpp"

namespace dstune {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + end - 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = mean;
    begin = end;
  }
  return ranks;
}

// The factor for intervals, by split conformal prediction: so wide that 90 % of the surprises are
// inside, counting one more that may lie anywhere.
double widening_for(std::vector<double> surprises) {
  const auto count = static_cast<double>(surprises.size());
  const double place = std::min(std::ceil(0.9 * (count + 1)), count);
  const auto at = surprises.begin() + static_cast<std::ptrdiff_t>(place) - 1;
  std::nth_element(surprises.begin(), at, surprises.end());
  return std::max(*at / kInside90, 1.0);
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr std::size_t kFewest = 3;
  if (a.size() < kFewest) return 0;
  const std::vector<double> x = ranks_of(a);
  const std::vector<double> y = ranks_of(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

PredictorQuality summarize_quality(const std::vector<double>& predicted,
                                   const std::vector<double>& measured,
                                   const std::vector<double>& surprises) {
  PredictorQuality quality;
  if (predicted.size() < 2) return quality;
  std::vector<double> errors;
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    errors.push_back(std::fabs(predicted[i] / measured[i] - 1));
  }
  const auto inside = std::count_if(surprises.begin(), surprises.end(),
                                    [](double surprise) { return surprise <= kInside90; });
  quality.count = static_cast<int>(predicted.size());
  quality.median_error = summarize(std::move(errors)).median;
  quality.rank_correlation = rank_correlation(predicted, measured);
  quality.inside_90 = static_cast<double>(inside) / static_cast<double>(surprises.size());
  quality.widening = widening_for(surprises);
  return quality;
}

}  // namespace dstune
