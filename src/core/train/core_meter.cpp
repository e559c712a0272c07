#include "core/train/core_meter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include <sys/resource.h>

#include "core/base/text.hpp"

namespace dstune {
namespace {

Seconds thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + static_cast<Seconds>(time.tv_nsec) * 1e-9;
}

// Without those that had to wait for a disk, which a step has none of.
std::int64_t thread_page_faults() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return use.ru_minflt;
}

// Each round needs the one before, so that neither vector units nor caches change the result.
std::uint64_t mix_often(std::uint64_t value) {
  constexpr int kRounds = 50'000;
  for (int i = 0; i < kRounds; ++i) {
    value ^= value << 13U;
    value ^= value >> 7U;
    value ^= value << 17U;
  }
  return value;
}

// The best of a few tries counts: the time that an interrupt takes is no property of the core.
double probe() {
  constexpr int kTries = 3;
  volatile std::uint64_t value = 1;
  Seconds best = 0;
  for (int i = 0; i < kTries; ++i) {
    const Seconds begin = thread_time();
    value = mix_often(value);
    const Seconds time = thread_time() - begin;
    best = i == 0 ? time : std::min(best, time);
  }
  return best > 0 ? 1 / best : 0;
}

}  // namespace

CoreMeter::CoreMeter(Device& device, DType dtype)
    : works_here_(device.computes() && !device.overlaps()) {
  if (works_here_) {
    use_.probe_per_s = probe();
    use_.probe = "integers";
  } else if (const auto peaks = device.peaks(dtype)) {
    use_.probe_per_s = peaks->gemm_flops_per_s;
    use_.probe = concat("gemm ", name_of(dtype));
  }
}

void CoreMeter::begin_step() {
  faults_at_begin_ = thread_page_faults();
  begin_ = thread_time();
}

// A thread that waits for others sleeps for the most part, but not all of the time: CPU time beyond
// what its own work wanted was spent on waiting and is not counted.
void CoreMeter::end_step(Seconds total, Seconds exposed, double ran) {
  if (!works_here_) return;
  const Seconds wanted = ran * std::max(total - exposed, 0.0);
  use_.wanted += wanted;
  use_.had += std::min(thread_time() - begin_, wanted);
  const auto faults = static_cast<double>(thread_page_faults() - faults_at_begin_);
  page_faults_.push_back(ran > 0 ? std::llround(faults / ran) : 0);
}

std::vector<CoreUse> CoreMeter::use() const {
  if (!works_here_ && use_.probe_per_s <= 0) return {};
  CoreUse use = use_;
  if (!page_faults_.empty()) {
    std::vector<std::int64_t> faults = page_faults_;
    const auto middle = faults.begin() + static_cast<std::ptrdiff_t>(faults.size() / 2);
    std::nth_element(faults.begin(), middle, faults.end());
    use.page_faults = *middle;
  }
  return {use};
}

}  // namespace dstune
