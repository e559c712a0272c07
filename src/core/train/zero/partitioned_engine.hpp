// Stages 1 and 2: optimizer state partitioned; in stage 2 gradients as well.
#pragma once

#include <vector>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/flat_layout.hpp"
#include "core/train/zero/gradient_bucket.hpp"
#include "core/train/zero/optimizer_state.hpp"
#include "core/train/zero/partition_gradients.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-1/2 optimizer with contiguous_gradients, without offload. What it holds and
/// when: zero-step.md 2.3; its collectives: 3.2; its passes: 4.1 and 4.2.
class PartitionedEngine final : public EngineBase {
 public:
  explicit PartitionedEngine(const EngineContext& context);

  void begin_micro_step(bool boundary) override { boundary_ = boundary; }
  void fetch(std::size_t) override {}
  void release(std::size_t) override {}
  Tensor parameter(std::size_t tensor) const override;
  void gradient_ready(std::size_t tensor, Buffer gradient) override;
  void end_backward() override;
  StepResult step() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 private:
  struct Group {
    Buffer flat;    // model dtype, padded
    Buffer master;  // fp32, this rank's partition
    OptimizerState optimizer;
  };

  bool is_stage_1() const { return config().stage == 1; }
  Tensor own_partition(std::size_t group) const;
  void allocate(std::size_t group);
  void keep(std::size_t tensor, Buffer gradient);
  void reduce_later(std::size_t tensor, Buffer gradient);
  void reduce_kept();
  void flush();
  void average_bucket();
  bool overflowed();
  double global_norm();
  Buffer master_gradients(std::size_t group);
  void update(std::size_t group, double factor);

  std::vector<FlatLayout> layouts_;
  std::vector<Group> states_;
  std::vector<std::size_t> group_of_;  // by tensor
  GradientBucket bucket_;
  PartitionGradients partition_;
  std::vector<Buffer> kept_;  // stage 1: .grad of every tensor until the boundary
  bool boundary_ = true;
};

}  // namespace dstune
