// Stage 3: a rank's shards of the parameters in its host's memory.
#pragma once

#include <cstddef>
#include <vector>

#include "core/experiment/step_config.hpp"
#include "core/train/zero/gather/parameter_shards.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"

namespace dstune {

/// What stage 3 has on the host if it offloads parameters (docs/offload.md, "Parameters on the
/// host"). Each shard is made as a tensor of its own, which is pinned if the configuration says so.
/// Those of trained parameters then move into one tensor for each parameter group, which is pinned
/// whatever it says; what they leave stays in the cache of pinned memory. Frozen ones stay as made.
class HostParameterShards final : public ParameterShards {
 public:
  /// @param layout  of `groups`; it must outlive this
  HostParameterShards(Device& device, const StepConfig& config,
                      const std::vector<ParameterGroup>& groups, const ShardLayout& layout,
                      int rank, const Fill& fill);

  PlacedTensor shard(std::size_t tensor) const override;
  PlacedTensor of(const SubGroup& group) const override;

 private:
  /// The tensor of a parameter group.
  struct Flat {
    Buffer buffer;
    std::int64_t begin = 0;  // in the layout
  };

  void make_alone(std::size_t tensor, bool pins, int rank, const Fill& fill);
  void flatten(const std::vector<ParameterGroup>& groups);
  PlacedTensor in_flat(std::size_t tensor, std::int64_t offset, std::int64_t count) const;

  Device& device_;
  const ShardLayout& layout_;
  DType dtype_;
  Tier tier_of_alone_;
  std::vector<Buffer> alone_;  // by tensor: empty where it is in a group
  std::vector<Flat> flats_;
  std::vector<std::size_t> flat_of_;  // by tensor
};

}  // namespace dstune
