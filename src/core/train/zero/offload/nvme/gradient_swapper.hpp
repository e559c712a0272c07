// Gradients on their way from the device to files on a drive.
#pragma once

#include <optional>
#include <vector>

#include "core/device/drive/drive.hpp"
#include "core/train/zero/offload/nvme/swap_buffers.hpp"

namespace dstune {

/// DeepSpeed's AsyncTensorSwapper. From the first gradient of a step on it has all buffers that are
/// free, until finish(). A gradient is copied into one buffer until that has no room for the next;
/// then the buffer is written while others are filled. Where all of them are under way the host
/// waits for all.
class GradientSwapper {
 public:
  /// @param buffers, writes  must outlive this
  GradientSwapper(Device& device, SwapBuffers& buffers, DriveHandle& writes)
      : device_(device), pool_(buffers), writes_(writes) {}

  /// @param gradient  fp32, on the device; no longer than a buffer
  void add(Tensor gradient, const DriveExtent& file);
  /// Everything is on the drive, and the buffers are given back. Nothing is done if there are none.
  void finish();

 private:
  struct Entry {
    Tensor tensor;  // in a buffer
    DriveExtent file;
  };

  void make_room(std::int64_t numel);
  void write_current();
  void wait();

  Device& device_;
  SwapBuffers& pool_;
  DriveHandle& writes_;
  std::vector<SwapBuffers::Number> all_;
  std::vector<SwapBuffers::Number> free_;
  std::vector<SwapBuffers::Number> under_way_;
  std::optional<SwapBuffers::Number> current_;
  std::vector<Entry> entries_;  // of the current one
  std::int64_t fill_ = 0;       // its elements
};

}  // namespace dstune
