// A rank's file on a drive, to which stage 3 swaps what it offloads to "nvme".
#pragma once

#include <memory>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "core/device/drive/aio_settings.hpp"
#include "core/device/ledger/ledger.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// A drive, or the system below it, has refused a request, moved only a part of it, or is full.
class DriveError : public Error {
 public:
  using Error::Error;
};

/// A tensor that is read from a file or written to it.
struct DriveTransfer {
  Transfer direction = Transfer::nvme_read;
  Tensor tensor;     ///< in the host's memory
  Bytes offset = 0;  ///< in the file
};

/// Reads and writes that run while the host does something else: a handle of DeepSpeed's aio op.
/// Used by one thread.
class DriveQueue {
 public:
  DriveQueue() = default;
  DriveQueue(const DriveQueue&) = delete;
  DriveQueue& operator=(const DriveQueue&) = delete;
  /// Waits for what is under way, and gives up the rest.
  virtual ~DriveQueue() = default;

  /// Begins, and returns. The tensor's memory must stay until wait() has returned.
  virtual void start(const DriveTransfer& transfer) = 0;
  /// Returns when all that was started has ended.
  /// @throws DriveError  if the drive has failed
  virtual void wait() = 0;
};

/// It must outlive its queues. What was never written reads as anything.
class DriveFile {
 public:
  DriveFile() = default;
  DriveFile(const DriveFile&) = delete;
  DriveFile& operator=(const DriveFile&) = delete;
  virtual ~DriveFile() = default;

  /// Makes the file `size` bytes long, on the drive too where that can be known before it is
  /// written.
  /// @throws DriveError  if the drive has no room for them
  virtual void grow_to(Bytes size) = 0;
  virtual std::unique_ptr<DriveQueue> make_queue(const AioSettings& settings) = 0;
};

}  // namespace dstune
