#include "core/search/tuners/compare/profile_spread.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/backend_list.hpp"
#include "core/search/tuners/compare/score.hpp"

namespace dstune {
namespace {

/// The times of a step that a wrong profile would change, per unit of the step's work: samples,
/// tokens, FLOPs, or the step itself.
struct Step {
  Seconds time = 0;
  Seconds by_profile = 0;  ///< the part of `time` that the profile's events and library take
  /// The uncertainty of the step's time by each of the profile's numbers: events, then latency and
  /// bandwidth of each collective.
  std::vector<Seconds> uncertain;
};

double exposed_share(const HostLine& line, const RunSettings& settings) {
  if (traits_of_backend(settings.backend).computes_on_host) return 1;
  return line.time > 0 ? std::min(line.idle / line.time, 1.0) : 0;
}

void add_host(Step& step, const RunSettings& settings, const Ledger& ledger) {
  for (const HostLine& line : ledger.host()) {
    const double share = exposed_share(line, settings);
    step.by_profile += line.time * share;
    step.uncertain[static_cast<std::size_t>(line.event)] +=
        static_cast<double>(line.calls) * share * settings.host_overhead.uncertainty_of(line.event);
  }
}

// Of a line whose mean message is one that costs nothing, what was added is of its large messages.
void add_large_among_small(Step& step, const LibraryRate& rate, const HostOverhead& overhead,
                           const CollectiveLine& line) {
  if (rate.large_bus_bytes_per_s <= 0) return;
  step.by_profile += line.added;
  const auto first =
      kHostEvents + 2 * static_cast<std::size_t>(&rate - overhead.collectives.data());
  step.uncertain[first + 1] +=
      line.added * rate.large_bus_bytes_per_s_uncertainty / rate.large_bus_bytes_per_s;
}

// The library adds nothing where it would have been done sooner than the step's own collective.
void add_library(Step& step, const HostOverhead& overhead, const Ledger& ledger) {
  for (const CollectiveLine& line : ledger.collectives()) {
    const LibraryRate* rate =
        line.added > 0 ? library_rate(overhead, line.kind, line.dtype) : nullptr;
    if (rate == nullptr) continue;
    const auto calls = static_cast<double>(line.calls - line.pipelined);
    // A line has the sum of its messages, which are taken to be alike.
    const Bytes message = line.bytes / std::max<std::uint64_t>(line.calls, 1);
    const double bandwidth = bus_bytes_per_s(*rate, message);
    if (bandwidth <= 0) {
      add_large_among_small(step, *rate, overhead, line);
      continue;
    }
    const double off = rate->is_large(message) ? rate->large_bus_bytes_per_s_uncertainty
                                               : rate->bus_bytes_per_s_uncertainty;
    const Seconds transfer = line.wire_bytes / bandwidth;
    step.by_profile += calls * rate->latency + transfer;
    const auto first =
        kHostEvents + 2 * static_cast<std::size_t>(rate - overhead.collectives.data());
    step.uncertain[first] += calls * rate->latency_uncertainty;
    step.uncertain[first + 1] += transfer * off / bandwidth;
  }
}

Step step_of(const RunSettings& settings, Metric metric, const Measured& measured) {
  const HostOverhead& overhead = settings.host_overhead;
  Step step{typical_step_time(measured), 0,
            std::vector<Seconds>(kHostEvents + 2 * overhead.collectives.size())};
  add_host(step, settings, measured.ledger);
  add_library(step, overhead, measured.ledger);
  const double work = metric == Metric::latency ? 1 : score(metric, measured) * step.time;
  if (!(work > 0)) return {0, 0, step.uncertain};
  step.time /= work;
  step.by_profile /= work;
  for (Seconds& each : step.uncertain) each /= work;
  return step;
}

// For the order of two steps to turn, the events of which the slower step has more must be cheaper,
// or those of which it has less dearer.
Seconds shift_in_common(Seconds more, double factor) {
  return more > 0 ? more * (1 - 1 / factor) : -more * (factor - 1);
}

std::pair<Step, Step> by_speed(const RunSettings& settings, Metric metric, const Measured& a,
                               const Measured& b) {
  auto steps = std::pair(step_of(settings, metric, a), step_of(settings, metric, b));
  if (steps.second.time < steps.first.time) std::swap(steps.first, steps.second);
  return steps;
}

double spread_between(const HostOverhead& overhead, const Step& faster, const Step& slower) {
  if (!(faster.time > 0)) return 0;
  Seconds spread = shift_in_common(slower.by_profile - faster.by_profile, overhead.spread_factor);
  for (std::size_t i = 0; i < faster.uncertain.size(); ++i) {
    spread = std::hypot(spread, slower.uncertain[i] - faster.uncertain[i]);
  }
  return spread / faster.time;
}

}  // namespace

double profile_spread(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b) {
  const auto [faster, slower] = by_speed(settings, metric, a, b);
  return spread_between(settings.host_overhead, faster, slower);
}

bool hangs_on_profile(const RunSettings& settings, Metric metric, const Measured& a,
                      const Measured& b) {
  const auto [faster, slower] = by_speed(settings, metric, a, b);
  const double spread = spread_between(settings.host_overhead, faster, slower);
  if (!(spread > 0)) return false;
  const double gap = slower.time / faster.time - 1;
  const double noise = noise_threshold(a, b);
  return gap <= std::hypot(noise, spread) && std::max(gap, spread) > noise;
}

}  // namespace dstune
