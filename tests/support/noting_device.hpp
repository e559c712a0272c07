// A dry device that notes in which order a drive is read and written, and where the host waits.
#pragma once

#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"

namespace dstune::test {

/// Notes "rN" and "wN" for what lies in the N-th part of the drive's file, "adam" for an update,
/// and "wait".
class NotingDevice final : public DryDevice {
 public:
  /// What repeats itself, but for waits, is noted each time or once.
  enum class Repeats { each, once };
  /// @param part  its bytes
  explicit NotingDevice(Bytes part, Repeats repeats = Repeats::each)
      : DryDevice(Bytes{1} << 40U), part_(part), repeats_(repeats) {}

  std::string take_notes() {
    const std::string notes = join(notes_, " ");
    notes_.clear();
    return notes;
  }

 private:
  Seconds time_on_drive(const DriveTransfer& transfer) override {
    note(concat(transfer.direction == Transfer::nvme_read ? "r" : "w", transfer.offset / part_));
    return 0;
  }
  void wait_until(Seconds /*end*/) override { notes_.emplace_back("wait"); }
  void account_on_host(const Work& work) override {
    if (work.operation == "adam") note("adam");
  }
  void note(const std::string& what) {
    const bool is_repeated = !notes_.empty() && notes_.back() == what;
    if (repeats_ == Repeats::each || !is_repeated) notes_.push_back(what);
  }

  Bytes part_;
  Repeats repeats_;
  std::vector<std::string> notes_;
};

}  // namespace dstune::test
