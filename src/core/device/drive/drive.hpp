// What a training step does with a drive: its file, its reads and writes, and its waits.
#pragma once

#include <memory>
#include <string>

#include "core/device/device.hpp"
#include "core/device/drive/drive_file.hpp"

namespace dstune {

/// A piece of a rank's file.
struct DriveExtent {
  Bytes offset = 0;
  Bytes size = 0;
};

/// A rank's file in the directory that a configuration names. It has no name of its own, and is
/// gone when the rank is. Its pieces count as memory of Tier::nvme.
class Drive {
 public:
  /// @param device  must outlive this
  /// @throws DriveError  if there can be no such file
  Drive(Device& device, const std::string& directory);
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;
  ~Drive();

  /// A new piece for `size` bytes, whose contents are undefined.
  /// @throws OutOfMemoryError  of Tier::nvme, if the drive has no room
  DriveExtent take(MemoryCategory category, Bytes size);

 private:
  friend class DriveHandle;

  Device& device_;
  std::unique_ptr<DriveFile> file_;
  Bytes taken_ = 0;  // of the memory that is counted
  Bytes end_ = 0;    // of the file
};

/// A handle of DeepSpeed's aio op: reads and writes of one drive, which are entered in the ledger.
class DriveHandle {
 public:
  /// @param drive  must outlive this
  DriveHandle(Drive& drive, const AioSettings& settings)
      : device_(drive.device_), queue_(drive.file_->make_queue(settings)) {}

  /// Begin, and return. The tensor lies in the host's memory, which must stay until wait() has
  /// returned; it fits in the piece, at its beginning.
  void read(const DriveExtent& from, Tensor to, TransferPurpose purpose) {
    start(Transfer::nvme_read, from, to, purpose);
  }
  void write(Tensor from, const DriveExtent& to, TransferPurpose purpose) {
    start(Transfer::nvme_write, to, from, purpose);
  }
  /// The host waits for all of them.
  /// @throws DriveError  if the drive has failed
  void wait() { device_.await_drive(*queue_); }

 private:
  void start(Transfer direction, const DriveExtent& extent, Tensor tensor, TransferPurpose purpose);

  Device& device_;
  std::unique_ptr<DriveQueue> queue_;
};

}  // namespace dstune
