// The parameters in flat buffers, and this rank's partition of master weights and optimizer state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/train/zero/frozen_parameters.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// The tensors that stages 1 and 2 hold besides gradients (docs/deepspeed-step.md, "Memory of
/// stages 1 and 2"): for each parameter group e A bytes of parameters, and (4 + s) A / N bytes of
/// fp32 master and optimizer state (s is 4 bytes for each of state_tensors()).
class PartitionedStates {
 public:
  /// Whether the master and the optimizer's state are here, on the device.
  enum class Master { here, elsewhere };

  /// Allocates parameters and master, uninitialised but for the padding, which is zero.
  /// @param frozen   the tensors that the layouts leave out
  /// @param layouts  must outlive this
  PartitionedStates(Device& device, Collectives& collectives, DType dtype, FrozenParameters frozen,
                    const FlatLayouts& layouts, Master master = Master::here);

  const FlatLayouts& layouts() const noexcept { return layouts_; }
  std::size_t groups() const noexcept { return layouts_.size(); }
  Tensor parameter(std::size_t tensor) const;
  /// This rank's partition of the parameters of a group.
  Tensor own_partition(std::size_t group) const;
  const FrozenParameters& frozen() const noexcept { return frozen_; }

  // The functions below but gather() are about the master.
  /// Gives the master the values of the parameters; called after these were filled.
  void initialize_master();
  /// One update of this rank's partition of a group by its gradients (fp32); copies the new values
  /// into the parameters.
  void update(std::size_t group, const NextUpdate& next, Tensor gradients);
  /// Gathers the updated partitions of all ranks; does nothing with one rank.
  void gather();

  /// Writes this rank's part of the master values of `tensor` into `all`, which is fp32 and has the
  /// tensor's numel.
  void read_own(std::size_t tensor, Tensor all);
  void write(std::size_t tensor, std::span<const float> values);

 private:
  struct Group {
    Buffer flat;    // model dtype, padded
    Buffer master;  // fp32, this rank's partition
    OptimizerState optimizer;
    std::vector<OwnedRange> ranges;
  };

  Device& device_;
  Collectives& collectives_;
  DType dtype_;
  FrozenParameters frozen_;
  const FlatLayouts& layouts_;
  std::vector<Group> groups_;
};

}  // namespace dstune
