#include "bench/bench_support.hpp"

#include <time.h>

#include "core/base/statistics.hpp"

namespace dstune::bench {

namespace {

Seconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + static_cast<Seconds>(time.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<Seconds> median_times(const std::vector<Case>& cases, int rounds) {
  std::vector<std::vector<double>> samples(cases.size());
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Seconds start = thread_time();
      cases[i].run();
      const Seconds time = thread_time() - start;
      if (round > 0) samples[i].push_back(time);
    }
  }
  std::vector<Seconds> medians;
  for (const auto& times : samples) medians.push_back(summarize(times).median);
  return medians;
}

}  // namespace dstune::bench
