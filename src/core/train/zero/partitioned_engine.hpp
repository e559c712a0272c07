// Stages 1 and 2: the optimizer state is partitioned, in stage 2 the gradients as well.
#pragma once

#include <memory>
#include <vector>

#include "core/train/zero/bucket_average.hpp"
#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/layout/flat_layout.hpp"
#include "core/train/zero/partitioned_states.hpp"
#include "core/train/zero/reduction/gradient_bucket.hpp"
#include "core/train/zero/reduction/partition_gradients.hpp"
#include "core/train/zero/reduction/partition_sums.hpp"

namespace dstune {

/// DeepSpeed's ZeRO-1/2 optimizer. The sections of docs/deepspeed-step.md on it are
/// "Memory of stages 1 and 2", "Buckets", "Averaging a bucket", "Passes over gradients" and "The
/// update".
class PartitionedEngine : public EngineBase {
 public:
  explicit PartitionedEngine(const EngineContext& context)
      : PartitionedEngine(context, Master::here) {}

  void begin_micro_step(bool boundary) override { boundary_ = boundary; }
  void fetch(std::size_t) override {}
  void release(std::size_t) override {}
  Tensor parameter(std::size_t tensor) const override { return states_.parameter(tensor); }
  void end_backward() override;
  StepResult step() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 protected:
  using Master = PartitionedStates::Master;
  /// @param master  elsewhere: whoever derives from this takes the averaged gradients of what this
  ///        rank owns, and makes the steps
  PartitionedEngine(const EngineContext& context, Master master);

  const FlatLayouts& layouts() const { return layouts_; }
  PartitionedStates& states() { return states_; }
  /// Null if the model's type is enough for sums.
  PartitionSums* sums() { return sums_.get(); }
  /// Takes an averaged gradient that touches this rank's partition, on the current stream.
  virtual void take_owned(GradientBucket::Entry& entry) { owned().take(entry); }
  /// Called when all gradients of a micro-step have been taken.
  virtual void end_micro_step();
  void drop_kept();
  /// Whether a step looks for inf and NaN.
  bool checks_overflow() const;

 private:
  void take_gradient(std::size_t tensor, Buffer gradient) final;
  bool is_stage_1() const { return config().stage == 1; }
  /// True in stage 1 if the sum over micro-steps has another type than the model
  /// (grad_accum_dtype), and only a copy of it gets into the bucket.
  bool has_own_sums() const {
    return is_stage_1() && !config().sums_in_partition() &&
           config().accumulation_dtype() != config().dtype;
  }
  OwnedGradients& owned() {
    return sums_ ? static_cast<OwnedGradients&>(*sums_) : static_cast<OwnedGradients&>(partition_);
  }
  void keep(std::size_t tensor, Buffer gradient);
  void reduce_kept(std::size_t tensor);
  void reduce_later(std::size_t tensor, Buffer gradient);
  Buffer clone(Buffer gradient);
  void flush();
  void reduce_bucket(Stream stream);
  void leave(GradientBucket::Entry& entry);
  bool keeps_taken() const;
  void wait_for_reduction();
  bool overflowed();
  Tensor find_clip_factor();
  void update(std::size_t group, Tensor factor);

  FlatLayouts layouts_;
  PartitionedStates states_;
  GradientBucket bucket_;
  std::unique_ptr<PartitionSums> sums_;
  std::unique_ptr<BucketAverage> average_;
  PartitionGradients partition_;
  // Stage 1: .grad of every tensor, or its sum, until the boundary. With sums in the partition also
  // what DeepSpeed has no use for any more.
  std::vector<Buffer> kept_;
  std::vector<Buffer> previous_;  // lists of the last flush, which may still run
  Event reduced_;                 // the end of the last flush
  bool boundary_ = true;
};

}  // namespace dstune
