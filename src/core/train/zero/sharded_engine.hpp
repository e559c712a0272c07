// Stage 3: parameters, gradients and optimizer state are sharded.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/gather/gathered_parameters.hpp"
#include "core/train/zero/gather/parameter_coordinator.hpp"
#include "core/train/zero/gather/parameter_shards.hpp"
#include "core/train/zero/layout/shard_groups.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/optimizer_state.hpp"
#include "core/train/zero/reduction/sharded_gradients.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-3 optimizer; parameters are gathered and released module by module, from shards
/// on the device or, with offload_param, in its host's memory. The sections of
/// docs/deepspeed-step.md about it are "Memory of stage 3", "Gathers of stage 3", "Reductions of
/// stage 3", "Passes over gradients" and "The update".
class ShardedEngine : public EngineBase {
 public:
  explicit ShardedEngine(const EngineContext& context) : ShardedEngine(context, States::here) {}

  void begin_micro_step(bool boundary) override;
  void fetch(std::size_t module) override;
  void release(std::size_t module) override;
  void fetch_for_backward(std::size_t module) override;
  void release_after_backward(std::size_t module) override;
  Tensor parameter(std::size_t tensor) const override;
  std::shared_ptr<const Buffer> memory_of(std::size_t tensor) const override;
  void end_backward() override;
  StepResult step() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 protected:
  /// Where gradients, master weights and optimizer state live.
  enum class States { here, elsewhere };
  /// @param states  elsewhere: whoever derives from this has them, says with bring_to() who takes
  ///        gradients, and overrides the functions below
  ShardedEngine(const EngineContext& context, States states);

  void bring_to(GradientShards& shards) { gradients_.bring_to(shards); }
  /// Whether the gradients of any rank have inf or NaN.
  virtual bool overflowed();
  /// Finds the norm, and makes the optimizer's step.
  virtual void update();
  /// Copies the master values of what this rank has of `tensor`, without padding, to `own`, which
  /// is fp32 and on the device; or gives them those of `own`. No part of a step.
  virtual void read_master(std::size_t tensor, Tensor own);
  virtual void write_master(std::size_t tensor, std::span<const float> own);

  /// Reads what is on a drive, which ends the construction.
  void bring_each_once();

  const ShardLayout& layout() const { return layout_; }
  /// The collectives of the ranks that share one copy of the model.
  Collectives& shards() const { return shard_groups_.shards(); }
  ParameterShards& parameter_shards() const { return *shards_; }
  /// The stream of the reductions.
  Stream reductions() const { return config().overlap_comm ? Stream::reduction : Stream::compute; }

 private:
  void take_gradient(std::size_t tensor, Buffer gradient) final;
  std::unique_ptr<ParameterShards> make_shards() const;
  void begin_states();
  /// The master of this rank's shard of a tensor, and of a sub-group's.
  Tensor master_of(std::size_t tensor) const {
    return master_.tensor(DType::fp32).slice(layout_.offset(tensor), layout_.shard(tensor));
  }
  Tensor master_of(const SubGroup& group) const {
    return master_.tensor(DType::fp32).slice(group.offset, group.numel);
  }
  bool has_hooks(std::size_t module) const;
  void fetch(std::size_t module, ParameterCoordinator::Pass pass);
  void gather(const ParameterShards::Tensors& tensors);
  void release(std::size_t module, ParameterCoordinator::Pass pass);
  void note_live() const;
  void reduce_leaf();
  void gather_persistent();
  void add_norm_of(const SubGroup& group);
  void update_sub_group(std::size_t index, Tensor factor);

  ShardGroups shard_groups_;
  ShardLayout layout_;
  std::unique_ptr<ParameterShards> shards_;
  // None of the next three if they are elsewhere.
  std::unique_ptr<DeviceGradientShards> kept_;
  Buffer master_;                       // fp32, of the tensors that are trained
  std::vector<OptimizerState> states_;  // by sub-group
  ShardedGradients gradients_;
  std::unique_ptr<QuantizedGradients> quantized_;  // null: nothing is quantised
  ParameterCoordinator coordinator_;
  GatheredParameters gathered_;
  std::vector<std::optional<std::size_t>> leaf_of_;  // by module
  std::optional<std::size_t> open_leaf_;             // the leaf module that runs now
  std::map<std::size_t, Buffer> leaf_gradients_;     // by tensor
  std::int64_t micro_step_ = -1;
};

}  // namespace dstune
