// What a search may still find: which candidates may be the best, by a belief of their times.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/search/predict/belief.hpp"

namespace dstune {

/// A candidate of a search, as an outlook sees it.
struct Prospect {
  double log_work = 0;  ///< the logarithm of what a step does, as the metric counts it
  bool is_measured = false;
  bool is_open = false;  ///< whether it may be tried now
  bool is_tried = false;
  int warnings = 0;            ///< each halves the chance that it fits
  std::size_t simplicity = 0;  ///< of equally fast ones that with the least is the best
};

/// A candidate counts as better if its speed is more than this above the best's, relatively.
constexpr double kBetterBy = 0.01;

/// All chances are found from the joint belief, with some hundreds of draws of the speeds of the
/// candidates that are likeliest to be better; neighbours share their errors in each.
struct Outlook {
  /// The measured candidate that is believed to be the fastest; none before a measurement.
  std::optional<std::size_t> best;
  /// The untried candidate that is likeliest to be better by kBetterBy, and its chance.
  std::optional<std::size_t> likeliest;
  double chance_of_likeliest = 0;
  /// The chance that any untried candidate is better by kBetterBy; 1 before a measurement.
  double chance_of_any = 1;
  /// Open candidates in the order in which to try them: those first that are the best of all in
  /// most draws. Those without a chance are left out, but for the first.
  std::vector<std::size_t> next;
  /// Measured candidates that are the best of the measured in 5 % of the draws or more, the
  /// likeliest first; at most six.
  std::vector<std::size_t> contenders;
};

/// @param prospects  the belief's configurations, in their order
Outlook outlook_of(const Belief& belief, const std::vector<Prospect>& prospects);

}  // namespace dstune
