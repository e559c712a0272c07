// Stages 1 and 2 with the optimizer in the host's memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/train/zero/offload/host_gradients.hpp"
#include "core/train/zero/offload/host_partition.hpp"
#include "core/train/zero/partitioned_engine.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-1/2 optimizer with offload_optimizer, "ZeRO-Offload" (docs/offload.md).
/// Gradients are averaged as without; what this rank owns of them goes to the host, which updates
/// its partition there while the device has nothing to do.
class OffloadedEngine final : public PartitionedEngine {
 public:
  explicit OffloadedEngine(const EngineContext& context);

  void begin_micro_step(bool boundary) override;
  StepResult step() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 private:
  void take_owned(GradientBucket::Entry& entry) override { gradients_.take(entry); }
  void end_micro_step() override {}
  bool overflowed();
  double squares();
  /// The factor that undoes the loss scale and clips; none: DeepSpeed leaves the gradients alone.
  std::optional<double> unscale_factor(double squares) const;

  std::int64_t largest_;
  HostPartition partition_;
  HostGradients gradients_;
  std::int64_t micro_step_ = -1;
};

}  // namespace dstune
