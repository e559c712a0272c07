// When collectives ran and when the computation waited, in one step of a device whose streams run
// beside each other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/device/ledger/ledger.hpp"
#include "core/device/stream.hpp"

namespace dstune {

class Device;

/// Points in time are events, which are read when the step is over, so that looking at the clock
/// makes nobody wait.
class Timeline {
 public:
  void clear();

  /// From now on each call and host event counts `times` times, as Ledger::count_each() does it.
  /// @returns how often they counted before
  std::uint64_t count_each(std::uint64_t times) noexcept { return std::exchange(times_, times); }

  /// Says that a collective ran from `begin` to `end`.
  /// @param call  its kind; what was sent is counted already
  void add_call(const CollectiveLine& call, const Event& begin, const Event& end);
  /// Says that the compute stream could not go on between `begin` and `end`.
  void add_stall(const Event& begin, const Event& end);
  /// Says that the host was busy with `event`: the compute stream had nothing to do between `begin`
  /// and `end`, which are recorded on it before and after.
  void add_host(HostEvent event, const Event& begin, const Event& end);

  /// Adds the time of every call to its line in `ledger`: the part within stalls is exposed, the
  /// rest overlapped. Adds the idle time of every host event, too. Forgets all of them. To be
  /// called after device.synchronize().
  void settle(const Device& device, Ledger& ledger);

 private:
  struct Span {
    Event begin;
    Event end;
  };
  struct Call {
    CollectiveLine line;
    Span span;
    std::uint64_t times;
  };

  struct Idle {
    HostEvent event;
    Span span;
    std::uint64_t times;
  };

  std::vector<Call> calls_;
  std::vector<Idle> idle_;
  std::vector<Span> stalls_;  // in order of time; they do not touch each other
  std::uint64_t times_ = 1;
};

}  // namespace dstune
