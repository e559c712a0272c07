// What is known of a sub-group whose optimizer is on a drive.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/drive/drive.hpp"
#include "core/train/zero/offload/nvme/swap_rules.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// A part of a sub-group's gradients: fp32, on the device.
struct GradientPiece {
  std::int64_t offset = 0;  ///< its first element in the sub-group
  Tensor tensor;
  std::shared_ptr<const Buffer> memory;  ///< in which it lies, maybe with others
};

struct SwappedSubGroup {
  /// A file of a gradient, or of the part of it that is written.
  struct GradientFile {
    std::int64_t offset = 0;
    std::int64_t numel = 0;
    DriveExtent extent;
    bool is_written = false;
  };

  std::int64_t numel = 0;
  DriveExtent master;
  std::vector<DriveExtent> state;
  bool has_state = false;  ///< from the first update on
  std::vector<GradientFile> files;
  std::vector<GradientPiece> kept;  ///< what is in no file, until the sub-group has been stepped
  OptimizerState first_state{
      Tier::pageable};  ///< as the first update leaves it, until it is written

  bool has_gradients() const;
  bool has_new_state() const { return !has_state && first_state.exists(); }
  std::size_t tensors() const { return 1 + (has_state ? state.size() : 0); }
};

}  // namespace dstune
