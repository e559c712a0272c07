// Interleaved timing of a few functions, so that what else the machine does meets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace dstune::bench {

struct Case {
  std::string name;
  std::function<void()> run;
};

/// Median seconds per call of each case, in time of the calling thread: what others do on the
/// machine costs bandwidth, but no turns. Every round calls each case once, the first round is not
/// counted. For cases that neither wait nor use other threads.
std::vector<Seconds> median_times(const std::vector<Case>& cases, int rounds);

}  // namespace dstune::bench
