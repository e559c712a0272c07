#include "bench/gpu/stopwatch.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/statistics.hpp"
#include "core/device/operations/elementwise.hpp"

namespace dstune::bench {

namespace {

constexpr std::int64_t kFlushed = std::int64_t{256} << 20U;  // bytes: twice the largest L2 cache
constexpr Seconds kWarm = 0.5;
constexpr Seconds kLongEnough = 0.2;  // of all queues and rounds
constexpr double kFewest = 7;
constexpr double kMost = 41;

}  // namespace

Stopwatch::Stopwatch(Device& device) : device_(device) {
  if (!device.overlaps()) return;
  space_ = make_buffer(device, MemoryCategory::temporaries, kFlushed, DType::int8);
}

void Stopwatch::flush() {
  if (space_) device_.run(FillZero{space_.tensor(DType::int8)});
}

void Stopwatch::warm_up(const Queue& queue) {
  if (!device_.overlaps()) return;
  for (const Seconds begin = device_.now(); device_.now() - begin < kWarm;) {
    for (int i = 0; i < 16; ++i) queue();
    device_.synchronize();
  }
}

Seconds Stopwatch::time_of(const Queue& queue) {
  flush();
  const Event begin = device_.record(Stream::compute);
  queue();
  const Event end = device_.record(Stream::compute);
  device_.synchronize();
  return device_.time_of(end) - device_.time_of(begin);
}

std::vector<Seconds> Stopwatch::times(const std::vector<Queue>& queues) {
  std::vector<Seconds> results;
  results.reserve(queues.size());
  for (const Queue& queue : queues) queue();  // whatever is made at the first call
  for (const Queue& queue : queues) results.push_back(time_of(queue));
  const Seconds round = std::accumulate(results.begin(), results.end(), Seconds{0});
  const double rounds = std::clamp(kLongEnough / std::max(round, 1e-6), kFewest, kMost);
  std::vector<std::vector<double>> samples(queues.size());
  for (int i = 0; i < static_cast<int>(rounds); ++i) {
    for (std::size_t which = 0; which < queues.size(); ++which) {
      samples[which].push_back(time_of(queues[which]));
    }
  }
  std::transform(samples.begin(), samples.end(), results.begin(),
                 [](const auto& times) { return summarize(times).median; });
  return results;
}

}  // namespace dstune::bench
