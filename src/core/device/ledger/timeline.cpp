#include "core/device/ledger/timeline.hpp"

#include <algorithm>

#include "core/device/device.hpp"

namespace dstune {

namespace {

struct Interval {
  Seconds begin;
  Seconds end;
};

/// The part of `call` that lies within `stalls`, which are in order and do not touch each other.
Seconds time_within(const std::vector<Interval>& stalls, Interval call) {
  Seconds sum = 0;
  const auto ends_before = [](const Interval& stall, Seconds time) { return stall.end <= time; };
  auto stall = std::lower_bound(stalls.begin(), stalls.end(), call.begin, ends_before);
  for (; stall != stalls.end() && stall->begin < call.end; ++stall) {
    sum += std::min(stall->end, call.end) - std::max(stall->begin, call.begin);
  }
  return sum;
}

}  // namespace

void Timeline::clear() {
  calls_.clear();
  stalls_.clear();
  idle_.clear();
}

void Timeline::add_call(const CollectiveLine& call, const Event& begin, const Event& end) {
  calls_.push_back({call, {begin, end}, times_});
}

void Timeline::add_stall(const Event& begin, const Event& end) { stalls_.push_back({begin, end}); }

void Timeline::add_host(HostEvent event, const Event& begin, const Event& end) {
  idle_.push_back({event, {begin, end}, times_});
}

void Timeline::settle(const Device& device, Ledger& ledger) {
  const auto read = [&](const Span& span) {
    return Interval{device.time_of(span.begin), device.time_of(span.end)};
  };
  std::vector<Interval> stalls;
  stalls.reserve(stalls_.size());
  for (const Span& span : stalls_) stalls.push_back(read(span));
  for (Call& call : calls_) {
    const Interval time = read(call.span);
    call.line.exposed = time_within(stalls, time);
    call.line.overlapped = time.end - time.begin - call.line.exposed;
    const std::uint64_t outer = ledger.count_each(call.times);
    ledger.add(call.line, 0);
    ledger.count_each(outer);
  }
  for (const Idle& idle : idle_) {
    const Interval time = read(idle.span);
    const std::uint64_t outer = ledger.count_each(idle.times);
    ledger.add_idle(idle.event, time.end - time.begin);
    ledger.count_each(outer);
  }
  clear();
}

}  // namespace dstune
