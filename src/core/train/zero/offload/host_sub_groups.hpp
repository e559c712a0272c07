// Stage 3: master weights, gradients and optimizer state in the host's memory, by sub-group.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/gather/parameter_shards.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/device_sub_group.hpp"
#include "core/train/zero/offload/nvme/optimizer_swapper.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// What stage 3 steps on the host if it offloads the optimizer. For a sub-group of s elements per
/// rank: the fp32 master, 4 s, which is never pinned; fp32 gradients, 4 s, which are pinned if the
/// configuration says so; and the optimizer's state, which is not. All of them include padding.
/// With offload_optimizer.ratio below 1 the first sub-groups stay on the device. With device "nvme"
/// those that are large enough lie on a drive.
class HostSubGroups {
 public:
  /// Allocates all but the optimizer's state, which comes with the first update.
  /// @param layout  must outlive this
  /// @param shards  of the parameters, with their first values; they must outlive this
  /// @param rank    of the ranks that share the model
  HostSubGroups(Device& device, const StepConfig& config, const ShardLayout& layout,
                ParameterShards& shards, int rank);

  /// Takes the gradient of a trained tensor's shard, without padding, to where it is stepped, in
  /// the order of the current stream; what goes to a drive does so in end_flush().
  /// @param memory  that of the gradient
  void take(std::size_t tensor, Tensor gradient, const std::shared_ptr<const Buffer>& memory);
  /// All gradients of a flush have been taken.
  void end_flush();

  /// One update of a sub-group, whose new values its shards have afterwards.
  /// @param factor  the gradients are multiplied by it first
  void update(std::size_t index, const NextUpdate& next, double factor);

  /// Copies the first master values of a shard to `own`, which is fp32 and on the device; or the
  /// other way. No part of a step.
  void read_master(std::size_t tensor, Tensor own) const;
  void write_master(std::size_t tensor, Tensor own) const;

 private:
  struct Group {
    Buffer master;
    Buffer gradients;
    OptimizerState optimizer{Tier::pageable};
    std::unique_ptr<DeviceSubGroup> on_device;  // in the place of all the others

    Tensor all_masters() const {
      return on_device ? on_device->master() : master.tensor(DType::fp32);
    }
    Tensor all_gradients() const {
      return on_device ? on_device->gradients() : gradients.tensor(DType::fp32);
    }
  };

  bool is_swapped(std::size_t group) const { return swapper_ != nullptr && swapper_->has(group); }
  void take_for_drive(std::size_t tensor, Tensor gradient, std::shared_ptr<const Buffer> memory);
  void begin_masters(const StepConfig& config);
  Buffer begin_master(PlacedTensor parameters, Buffer& converted);
  /// Of one whose shards are not all in the host's memory.
  Buffer gather_master(const SubGroup& group);
  void begin_masters_fast(const StepConfig& config, const OptimizerSwapper::Groups& groups);
  void begin_gradients(bool pins);
  Buffer on_host(MemoryCategory category, std::int64_t count, DType dtype) const {
    return make_buffer(device_, category, count, dtype, Tier::pageable);
  }
  /// Gives `use` the first `count` elements of a tensor's master, wherever they live.
  void with_master(std::size_t tensor, std::int64_t count,
                   const std::function<void(const PlacedTensor&)>& use) const;
  /// A tensor's shard of what its sub-group has.
  Tensor part(Tensor of_group, std::size_t tensor) const;
  const Group& group_of(std::size_t tensor) const { return groups_[place_of_[tensor]]; }

  Device& device_;
  const ShardLayout& layout_;
  ParameterShards& shards_;
  DType dtype_;
  Tier tier_;
  std::vector<Group> groups_;
  std::vector<std::size_t> place_of_;          // the sub-group, by tensor
  std::unique_ptr<OptimizerSwapper> swapper_;  // null: nothing is on a drive
  /// What the flush that runs has for a drive, by sub-group, in the order of their first gradients.
  std::vector<std::pair<std::size_t, std::vector<GradientPiece>>> for_drive_;
};

}  // namespace dstune
