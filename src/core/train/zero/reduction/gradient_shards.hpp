// Stage 3: where a rank keeps its part of the averaged gradients.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

/// Sums averaged gradients up over the micro-steps of a step, as ShardedGradients brings them.
class GradientShards {
 public:
  GradientShards() = default;
  GradientShards(const GradientShards&) = delete;
  GradientShards& operator=(const GradientShards&) = delete;
  virtual ~GradientShards() = default;

  /// @param first  of the micro-steps of a step: its gradients overwrite the shards, later ones are
  /// added
  virtual void begin_micro_step(bool first, bool last) = 0;
  /// Takes what this rank owns of an average, on the current stream.
  /// @param averaged  without padding and not empty; in the model dtype
  virtual void take(std::size_t tensor, Tensor averaged) = 0;
  /// All parts of a flush have been taken.
  virtual void end_flush() = 0;
};

/// The shards in one buffer of the accumulation dtype on the device, category gradients.
///
/// MiCS: in the last micro-step each flush is followed by the average of its shards, as they are
/// summed up, over the replicas: one all-reduce per tensor (DeepSpeed coalesces them in one call).
class DeviceGradientShards final : public GradientShards {
 public:
  /// @param replicas  the ranks that have the same shards; null: there are none
  DeviceGradientShards(const StepConfig& config, Device& device, Collectives* replicas,
                       const ShardLayout& layout);

  void begin_micro_step(bool first, bool last) override {
    is_first_ = first;
    is_last_ = last;
  }
  void take(std::size_t tensor, Tensor averaged) override;
  void end_flush() override;

  /// All shards, and the shard of one tensor, in the accumulation dtype.
  Tensor all() const { return shards_.tensor(dtype_); }
  Tensor shard(std::size_t tensor) const {
    return all().slice(layout_.offset(tensor), layout_.shard(tensor));
  }

 private:
  void sum_up(Tensor averaged, Tensor kept) const;

  Device& device_;
  DType dtype_;
  Collectives* replicas_;
  const ShardLayout& layout_;
  Buffer shards_;
  std::vector<Tensor> taken_;  // the shards of the flush that runs
  bool is_first_ = true;
  bool is_last_ = true;
};

}  // namespace dstune
