// Stage 3: a rank's shards of the parameters in its host's memory, or on a drive.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/train/zero/gather/parameter_shards.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "core/train/zero/offload/nvme/parameter_swapper.hpp"

namespace dstune {

/// What stage 3 has on the host if it offloads parameters (docs/offload.md, "Parameters on the
/// host"). Each shard is made as a tensor of its own, which is pinned if the configuration says so.
/// Those of trained parameters then move into one tensor for each parameter group, which is pinned
/// whatever it says; what they leave stays in the cache of pinned memory. Frozen ones stay as made.
///
/// With device "nvme" those that are large enough are made on a drive, and the groups' tensors have
/// room for offload_param.max_in_cpu elements in all: the first sub-groups of each group that fit
/// wholly move there, also from the drive. The shards of the others stay as they were made.
class HostParameterShards final : public ParameterShards {
 public:
  /// @param layout  of `groups`; it must outlive this
  HostParameterShards(Device& device, const StepConfig& config,
                      const std::vector<ParameterGroup>& groups, const ShardLayout& layout,
                      int rank, const Fill& fill);

  PlacedTensor shard(std::size_t tensor) const override;
  std::optional<PlacedTensor> of(const SubGroup& group) const override;
  const ShardsOnDrive* on_drive() const override { return swapper_.get(); }
  void bring(const Tensors& tensors) override;
  void read_ahead(const Tensors& tensors) override;
  void let_go(const Tensors& tensors) override;
  void read(const SubGroup& group, const PlacedTensor& to) override;
  void write(const SubGroup& group, const PlacedTensor& from) override;
  std::vector<PlacedTensor> bring_whole(std::span<const SubGroup> groups) override;
  void with_shard(std::size_t tensor, const std::function<void(PlacedTensor)>& use) override;

 private:
  /// The tensor of a parameter group.
  struct Flat {
    Buffer buffer;
    std::int64_t begin = 0;  // in the layout
    std::int64_t numel = 0;
  };

  void make(std::size_t tensor, bool pins, int rank, const Fill& fill);
  /// @param most  elements of all groups
  void make_flats(const std::vector<ParameterGroup>& groups, std::int64_t most);
  void move_into_flats();
  void move(std::size_t tensor);
  bool is_swapped(std::size_t tensor) const { return swapper_ && swapper_->has(tensor); }
  PlacedTensor in_flat(std::size_t tensor, std::int64_t offset, std::int64_t count) const;
  PlacedTensor part(const PlacedTensor& of_group, const SubGroup& group, std::size_t tensor) const;

  DType dtype_;
  Tier tier_of_alone_;
  std::vector<Buffer> alone_;  // by tensor: empty where it is in a group or on a drive
  std::vector<Flat> flats_;
  std::vector<std::size_t> flat_of_;           // by tensor
  std::unique_ptr<ParameterSwapper> swapper_;  // null: nothing is on a drive
};

}  // namespace dstune
