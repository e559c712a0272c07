// Stage 0: every rank has everything; gradients are averaged after the last backward.
#pragma once

#include <vector>

#include "core/train/zero/engine_base.hpp"
#include "core/train/zero/frozen_parameters.hpp"
#include "core/train/zero/optimizer_state.hpp"

namespace dstune {

/// The number of elements after which DeepSpeed closes a bucket in stage 0, whatever
/// reduce_bucket_size says.
constexpr std::int64_t kReplicatedBucket = 500'000'000;

/// Cuts tensors of these sizes, in their order, into the buckets of stage 0: a bucket closes after
/// the tensor with which its elements exceed `limit`.
/// @returns the end index of every bucket
std::vector<std::size_t> pack_replicated(const std::vector<std::int64_t>& sizes,
                                         std::int64_t limit);

/// The parameters, gradients and their average; the update is the derived class's.
class ReplicatedEngine : public EngineBase {
 public:
  void begin_micro_step(bool boundary) override { boundary_ = boundary; }
  void fetch(std::size_t) override {}
  void release(std::size_t) override {}
  Tensor parameter(std::size_t tensor) const override { return views_.at(tensor); }
  void end_backward() override;
  std::vector<float> read_parameter(std::size_t tensor) override;
  void write_parameter(std::size_t tensor, std::span<const float> values) override;

 protected:
  /// @param flat  true: all parameters that are trained are in one allocation
  ReplicatedEngine(const EngineContext& context, bool flat);

  void take_gradient(std::size_t tensor, Buffer gradient) final;
  /// The fp32 values that the optimizer updates: the parameter itself where there is no master.
  virtual Tensor master(std::size_t tensor) const = 0;

  Tensor gradient(std::size_t tensor) const { return gradients_[tensor].tensor(config().dtype); }
  void drop_gradients();
  /// The inf/NaN pass of both 16-bit wrappers. bf16 computes it too and ignores the result.
  bool overflowed() const;

 private:
  void average(std::size_t begin, std::size_t end);

  FrozenParameters frozen_;
  std::vector<Buffer> storage_;
  std::vector<Tensor> views_;
  std::vector<Buffer> gradients_;
  bool boundary_ = true;
};

/// fp32 without a wrapper: the optimizer works directly on the parameters, and its state exists
/// from the first step on.
class PlainEngine final : public ReplicatedEngine {
 public:
  explicit PlainEngine(const EngineContext& context);
  StepResult step() override;

 private:
  Tensor master(std::size_t tensor) const override { return parameter(tensor); }
  void clip();

  std::vector<OptimizerState> states_;  // by group
};

/// 16-bit with DeepSpeed's own Adam: flat parameters and a flat fp32 master.
class FusedEngine final : public ReplicatedEngine {
 public:
  explicit FusedEngine(const EngineContext& context);
  StepResult step() override;

 private:
  Tensor master(std::size_t tensor) const override;
  Buffer flat_gradients();

  std::vector<std::int64_t> offsets_;  // by tensor
  Buffer master_;
  OptimizerState state_;
};

/// 16-bit with any other optimizer: there is one fp32 master per tensor. torch's foreach AdamW adds
/// lists of temporaries of its own that are not modelled. Lamb has a step of its own
/// (docs/decisions/optimizers.md).
class UnfusedEngine final : public ReplicatedEngine {
 public:
  explicit UnfusedEngine(const EngineContext& context);
  StepResult step() override;

 private:
  Tensor master(std::size_t tensor) const override { return masters_[tensor].tensor(DType::fp32); }
  StepResult step_lamb();
  Buffer flattened() const;
  double norm_of_flattened();
  /// Updates the tensors of every group in the same way: `updated` says what the optimizer takes.
  template <class Updated>
  void update_groups(double gradient_scale, Updated updated);
  void write_back();

  std::vector<Buffer> masters_;
  std::vector<OptimizerState> states_;  // by group
};

}  // namespace dstune
