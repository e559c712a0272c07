// A rank's partition of master weights, gradients and optimizer state in its host's memory.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// What stages 1 and 2 keep in the host's memory if they offload the optimizer (docs/offload.md,
/// "Memory of stages 1 and 2"). For a group of p elements per rank, of which the model has e bytes
/// each: the fp32 master, 4 p; a staging tensor of the updated parameters, e p; fp32 gradients,
/// 4 p; and one more tensor of e bytes for each element of the largest parameter, which nothing
/// uses. They are pinned if the configuration says so; the optimizer's state never is.
class HostPartition {
 public:
  /// Allocates all but the optimizer's state, which comes with the first update.
  /// @param layouts  must outlive this
  /// @param largest  elements of the largest trained parameter
  HostPartition(Device& device, const StepConfig& config, const FlatLayouts& layouts, int rank,
                std::int64_t largest);

  /// The fp32 gradients of a group.
  Tensor gradients(std::size_t group) const { return groups_[group].gradients.tensor(DType::fp32); }
  Tier tier() const noexcept { return tier_; }

  /// Gives the master the values of `own`, the partition of the parameters on the device.
  void initialize_master(std::size_t group, Tensor own);
  /// One update of a group on the host, whose new values are then on their way into `own`.
  /// @param factor  the gradients are multiplied by it first; none: they are as they should be
  void update(std::size_t group, const NextUpdate& next, std::optional<double> factor, Tensor own);

  /// Writes this rank's part of the master values of `tensor` into `all`, which is on the device,
  /// is fp32 and has the tensor's numel; or the other way. No part of a step.
  void read_own(std::size_t tensor, Tensor all) const;
  void write_own(std::size_t tensor, Tensor all) const;

 private:
  struct Group {
    Buffer master;
    Buffer staging;  // model dtype
    Buffer gradients;
    OptimizerState optimizer{Tier::pageable};
    std::vector<OwnedRange> ranges;
  };

  Tensor staging(std::size_t group) const { return groups_[group].staging.tensor(dtype_); }

  Device& device_;
  const FlatLayouts& layouts_;
  DType dtype_;
  Tier tier_;
  std::vector<Group> groups_;
  Buffer unused_;
};

}  // namespace dstune
