// Stage 3: parameters, gradients and optimizer state are sharded.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/gather/gathered_parameters.hpp"
#include "core/train/zero/gather/parameter_coordinator.hpp"
#include "core/train/zero/layout/shard_groups.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/optimizer_state.hpp"
#include "core/train/zero/reduction/sharded_gradients.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-3 optimizer without offload; parameters are gathered and released module by
/// module. The sections of docs/deepspeed-step.md about it are "Memory of stage 3", "Gathers of
/// stage 3", "Reductions of stage 3", "Passes over gradients" and "The update".
class ShardedEngine final : public EngineBase {
 public:
  explicit ShardedEngine(const EngineContext& context);

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

 private:
  void take_gradient(std::size_t tensor, Buffer gradient) override;
  /// This rank's shard of a tensor, in a buffer that layout_ lays out.
  Tensor part(const Buffer& buffer, DType dtype, std::size_t tensor) const;
  /// The collectives of the ranks that share one copy of the model.
  Collectives& shards() const { return shard_groups_.shards(); }
  bool has_hooks(std::size_t module) const;
  void fetch(std::size_t module, ParameterCoordinator::Pass pass);
  void release(std::size_t module, ParameterCoordinator::Pass pass);
  void note_live() const;
  void reduce_leaf();
  void gather_persistent();
  bool overflowed();
  void add_norm_of(const SubGroup& group);
  void update(std::size_t index, Tensor factor);

  ShardGroups shard_groups_;
  ShardLayout layout_;
  Buffer shards_;                       // model dtype
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
