// Averaged gradients on their way from the device to the host's memory (stage 3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/scalar.hpp"
#include "core/experiment/step_config.hpp"
#include "core/train/zero/layout/shard_layout.hpp"
#include "core/train/zero/offload/host_sub_groups.hpp"
#include "core/train/zero/reduction/gradient_shards.hpp"

namespace dstune {

/// A rank's gradient shards in one tensor of the host's memory, in the model dtype. They are summed
/// up on the device: what the host has comes up, and the sum goes down again; in the first
/// micro-step the gradient goes down, and the same values come back. In the last one the norm is
/// taken there too, and the sum goes down once more in fp32. The host waits for none of these
/// copies if its memory is pinned.
class HostGradientShards final : public GradientShards {
 public:
  /// @param sub_groups  take the gradients of the last micro-step; they must outlive this
  HostGradientShards(Device& device, const StepConfig& config, const ShardLayout& layout,
                     HostSubGroups& sub_groups);

  void begin_micro_step(bool first, bool last) override {
    is_first_ = first;
    is_last_ = last;
  }
  void take(std::size_t tensor, Tensor averaged) override;
  void end_flush() override {
    sub_groups_.end_flush();
    on_device_.clear();
  }

  // The functions below are about the last micro-step, whose copies must be over.
  /// Whether this rank's shards have inf or NaN, by passes of the host.
  bool has_overflow();
  /// The sum of the squares of a sub-group's gradients, which the host reads.
  double squares(const SubGroup& group) const;
  /// The step is over.
  void forget_norms() { has_norm_.assign(has_norm_.size(), false); }

 private:
  Tensor all() const { return shards_.tensor(dtype_); }
  Tensor flag() { return {&flag_, 1, DType::uint8}; }
  void send(std::size_t tensor, Tensor gradient);
  /// One of the two searches: its mask has a byte for each element, of which any() is taken.
  void search(Tensor gradients);

  Device& device_;
  DType dtype_;
  const ShardLayout& layout_;
  HostSubGroups& sub_groups_;
  Tier tier_ = Tier::pinned;
  Buffer shards_;
  std::vector<std::shared_ptr<const Buffer>>
      on_device_;                                 // copies of the shards of the flush that runs
  std::vector<std::unique_ptr<Scalar>> squares_;  // by tensor
  std::vector<bool> has_norm_;                    // by tensor: it had a gradient
  Scalar sum_;
  std::uint8_t flag_ = 0;
  bool is_first_ = true;
  bool is_last_ = true;
};

}  // namespace dstune
