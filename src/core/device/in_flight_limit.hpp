// The in-flight limit: how far the host may run ahead of the device.
#pragma once

#include <cstddef>
#include <deque>

#include "core/device/device.hpp"

namespace dstune {

/// Stage 3 keeps the host from queueing gathers and reductions without end, since the memory that
/// they will give back is in use until then. At most kMost events that have not passed yet may be
/// queued.
class InFlightLimit {
 public:
  /// Called before the next work is queued: waits for the oldest event if too many have not passed.
  void wait(Device& device) {
    while (!events_.empty() && device.has_passed(events_.front())) events_.pop_front();
    if (events_.size() <= kMost) return;
    device.host_wait(events_.front());
    events_.pop_front();
  }
  /// @param end  the end of that work
  void add(const Event& end) { events_.push_back(end); }

 private:
  static constexpr std::size_t kMost = 2;

  std::deque<Event> events_;
};

}  // namespace dstune
