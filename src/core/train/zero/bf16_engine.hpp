// Stage 1 in bf16 with gradients that are summed up in fp32: DeepSpeed's BF16 optimizer.
#pragma once

#include <vector>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/partitioned_states.hpp"

namespace dstune {

/// The BF16 optimizer (docs/decisions/bf16-optimizer.md): the fp32 gradients of the whole model are
/// a permanent buffer per parameter group, laid out and padded as the parameters are. After every
/// backward the 16-bit gradients are added to it; at the boundary it is averaged as in stage 0.
/// Norm and clipping read and write all of it on every rank. There is no bucket, no overlap and no
/// overflow check: none of those keys is read.
class Bf16Engine final : public EngineBase {
 public:
  explicit Bf16Engine(const EngineContext& context);

  void begin_micro_step(bool boundary) override;
  void fetch(std::size_t) override {}
  void release(std::size_t) override {}
  Tensor parameter(std::size_t tensor) const override { return states_.parameter(tensor); }
  void end_backward() override;
  StepResult step() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 private:
  void take_gradient(std::size_t tensor, Buffer gradient) override;
  /// The fp32 gradient of a tensor.
  Tensor sum(std::size_t tensor) const;
  void zero_gradients();
  void add_to_sum(std::size_t tensor);
  void average();
  void find_norm();
  void clip();
  void zero_sums();

  FlatLayouts layouts_;
  PartitionedStates states_;
  std::vector<Buffer> sums_;       // by group, fp32, padded
  std::vector<Buffer> gradients_;  // by tensor, bf16: .grad from its first backward to the step
  bool boundary_ = true;
  bool zeroed_ = false;  // .grad was zeroed in this backward
};

}  // namespace dstune
