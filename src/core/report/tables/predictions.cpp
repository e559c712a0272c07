#include "core/report/tables/predictions.hpp"

#include "core/base/text.hpp"

namespace dstune {
namespace {

// The decimals that leave three digits.
int shown_decimals(double value) { return value >= 100 ? 0 : value >= 10 ? 1 : 2; }

std::string percent(double share, int decimals) {
  return concat(fixed(100 * share, decimals), " %");
}

}  // namespace

std::string prediction_text(Seconds predicted, Seconds half_interval, Seconds measured) {
  constexpr Seconds kLong = 10;
  const bool is_long = predicted >= kLong || measured >= kLong;
  const double unit = is_long ? 1 : 1e3;
  const char* name = is_long ? " s" : " ms";
  const int decimals = shown_decimals(predicted * unit);
  return concat("predicted ", fixed(predicted * unit, decimals), " +- ",
                fixed(half_interval * unit, decimals), name, " (90 %) from the others, measured ",
                fixed(measured * unit, decimals), name);
}

std::string quality_text(const PredictorQuality& quality) {
  constexpr int kFewest = 3;
  if (quality.count < kFewest) return "";
  return concat("step times of ", quality.count,
                " experiments, each predicted from the others: median error ",
                percent(quality.median_error, 1), ", rank correlation ",
                fixed(quality.rank_correlation, 2), ", ", percent(quality.inside_90, 0),
                " inside the interval of 90 %",
                quality.widening > 1
                    ? concat(", which is ", fixed(quality.widening, 1), " times wider for that")
                    : "");
}

}  // namespace dstune
