// What stages 1 and 2 keep of averaged gradients until the update.
#pragma once

#include <cstddef>

#include "core/device/device.hpp"
#include "core/train/zero/reduction/gradient_bucket.hpp"

namespace dstune {

/// The averaged gradients that touch a rank's partitions, summed up over the micro-steps of a step.
class OwnedGradients {
 public:
  OwnedGradients() = default;
  OwnedGradients(const OwnedGradients&) = delete;
  OwnedGradients& operator=(const OwnedGradients&) = delete;
  virtual ~OwnedGradients() = default;

  /// Takes an averaged gradient that touches a partition, on the current stream. What is left in
  /// `entry` is the gradient's own memory, if it has any and is not kept.
  virtual void take(GradientBucket::Entry& entry) = 0;
  /// All gradients of a micro-step have been taken.
  virtual void end_micro_step(bool boundary) = 0;

  // The functions below are about the sums.
  /// Searches the gradients of all groups. Local.
  virtual void find_overflow(Tensor flag) const = 0;
  /// Adds the squares of one group's ranges. Local.
  virtual void add_squares(std::size_t group, Tensor squares) const = 0;
  /// A group's partition in fp32, which the caller may overwrite; the groups are asked for in their
  /// order, each once.
  virtual Buffer flattened(std::size_t group) = 0;
  virtual void drop() = 0;
};

}  // namespace dstune
