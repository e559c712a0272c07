// A device with virtual clocks that remember what their time was spent on.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/device/dry/dry_device.hpp"

namespace dstune {

/// The number of parts into which its user can divide time.
constexpr std::size_t kMostTimeParts = 20;
using TimeParts = std::array<Seconds, kMostTimeParts>;

/// Computes nothing (see DryDevice) and moves clocks instead: one of the host and one for each
/// stream. Work by which a derived class advances a stream begins when the host has come to it and
/// the stream is done with what it holds; the host goes on without waiting for the device, as with
/// a GPU. Without overlap there is only the host's clock, as on a CPU.
///
/// Every clock knows on which work the time went that it waited for: of parallel streams only the
/// last one counts. The parts of a synchronized host's time add up to that time: they are the
/// critical path.
class ClockedDevice : public DryDevice {
 public:
  using DryDevice::DryDevice;

  Seconds now() const override { return host_.time; }
  bool has_memory_in_flight() const override { return overlaps(); }
  bool has_passed(const Event& event) const override { return event.time <= host_.time; }

  /// The parts of the host's time up to now.
  const TimeParts& time_parts() const noexcept { return host_.parts; }

  /// Keeps the current stream busy for `time`, which is added to the part `part` < kMostTimeParts.
  void advance(Seconds time, std::size_t part = 0);

 protected:
  /// Keeps the host busy for `time`.
  void advance_host(Seconds time, std::size_t part = 0) { host_.add(time, part); }
  void wait_until(Seconds end) override { advance_host(std::max(0.0, end - now())); }

 private:
  struct Clock {
    Seconds time = 0;
    TimeParts parts{};

    void add(Seconds more, std::size_t part) {
      time += more;
      parts.at(part) += more;
    }
    void wait_for(const Clock& other) {
      if (other.time > time) *this = other;
    }
  };

  Clock& clock(Stream stream) { return clocks_[static_cast<std::size_t>(stream)]; }
  void do_record(Stream stream, Event& event) override;
  void do_wait(Stream stream, const Event& event) override;
  void do_host_wait(const Event& event) override;
  void do_synchronize() override;

  Clock host_;
  std::array<Clock, kStreams> clocks_{};
};

}  // namespace dstune
