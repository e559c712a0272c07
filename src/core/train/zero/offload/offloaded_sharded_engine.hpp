// Stage 3 with the optimizer in the host's memory.
#pragma once

#include <cstddef>
#include <span>

#include "core/device/scalar.hpp"
#include "core/train/zero/offload/host_gradient_shards.hpp"
#include "core/train/zero/offload/host_sub_groups.hpp"
#include "core/train/zero/sharded_engine.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-3 optimizer with offload_optimizer, with or without offload_param. Parameters
/// are gathered and gradients reduced as without; what this rank owns of the gradients goes to the
/// host, which steps one sub-group after the other.
class OffloadedShardedEngine final : public ShardedEngine {
 public:
  explicit OffloadedShardedEngine(const EngineContext& context);

 private:
  bool overflowed() override;
  void update() override;
  void read_master(std::size_t tensor, Tensor own) override;
  void write_master(std::size_t tensor, std::span<const float> own) override;
  double squares();

  HostSubGroups sub_groups_;
  HostGradientShards gradients_;
  Scalar invalid_;  // stands for a norm that is inf or NaN
};

}  // namespace dstune
