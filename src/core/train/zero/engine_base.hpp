// The part that the engines of all stages have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/operations/elementwise.hpp"
#include "core/device/scalar.hpp"
#include "core/train/zero/layout/parameter_groups.hpp"
#include "core/train/zero/loss_scaler.hpp"
#include "core/train/zero/optimizer_state.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune {

/// The arguments of make_zero_engine, as the engines keep them.
struct EngineContext {
  StepConfig config;
  const ModelParameters* parameters;
  Device* device;
  Collectives* collectives;
  std::uint64_t seed;
};

class EngineBase : public ZeroEngine {
 public:
  bool is_trainable(std::size_t tensor) const final {
    return parameters().tensors[tensor].trainable;
  }
  void gradient_ready(std::size_t tensor, Buffer gradient) final {
    if (is_trainable(tensor)) take_gradient(tensor, std::move(gradient));
  }
  double loss_scale() const override { return scaler_.scale(); }
  double grad_norm() override;

 protected:
  EngineBase(const EngineContext& context, LossScaler::Kind scaler);

  /// gradient_ready() of a tensor that is trained.
  virtual void take_gradient(std::size_t tensor, Buffer gradient) = 0;

  const StepConfig& config() const { return context_.config; }
  const ModelParameters& parameters() const { return *context_.parameters; }
  Device& device() const { return *context_.device; }
  Collectives& collectives() const { return *context_.collectives; }
  std::uint64_t seed() const { return context_.seed; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  std::size_t tensor_count() const { return parameters().tensors.size(); }
  /// The tensors that are not frozen, in ascending order.
  const std::vector<std::size_t>& trained() const { return trained_; }
  std::int64_t numel(std::size_t tensor) const { return parameters().tensors[tensor].numel(); }
  int rank() const { return collectives().rank(); }
  int size() const { return collectives().size(); }

  NextUpdate next_update(double weight_decay) const {
    return {&config().optimizer, weight_decay, updates_ + 1};
  }
  /// Ends step(): counts the update and adapts the loss scale.
  StepResult finish(bool overflow);

  // Numbers of the step that stay on the device.
  /// The sum of the squares of all gradients, from start_norm() on.
  Tensor squares() const { return squares_.tensor(); }
  void start_norm();
  /// Adds to squares() the sum over `group` of the squares that `add_own(sum)` adds.
  template <class AddOwn>
  void add_squares_of(Collectives& group, AddOwn add_own);
  /// The factor that gradients are multiplied by, made of squares(), which must be complete.
  Tensor clip_factor();
  /// True if any rank of `group` finds inf or NaN in its own gradients; find_own(flag) searches
  /// them.
  template <class FindOwn>
  bool any_overflow(Collectives& group, FindOwn find_own);
  /// The same where each host knows its `own`: DeepSpeed's wrapper for Lamb sends that as fp32.
  bool any_overflow_of_hosts(Collectives& group, bool own);
  Tensor flag() const { return flag_.tensor(); }

  Buffer temporary(std::int64_t count, DType dtype) const {
    return make_buffer(device(), MemoryCategory::temporaries, count, dtype);
  }
  /// The sum over all ranks of values of which each belongs to one rank: `own` writes this rank's
  /// part into a zeroed fp32 tensor of `count` elements.
  template <class Own>
  std::vector<float> collect(std::int64_t count, Own own) {
    return collect(collectives(), count, own);
  }
  /// The same sum over the ranks of `group`.
  template <class Own>
  std::vector<float> collect(Collectives& group, std::int64_t count, Own own);

 private:
  EngineContext context_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::size_t> trained_;
  LossScaler scaler_;
  std::int64_t updates_ = 0;
  Scalar squares_;
  Scalar part_;  // one group's part of the squares
  Scalar factor_;
  Scalar flag_;
  std::optional<double> norm_scale_;  // scale of the gradients in squares_; none: there is no norm
  Buffer unused_state_;               // see leaves_unused_state()
};

template <class AddOwn>
void EngineBase::add_squares_of(Collectives& group, AddOwn add_own) {
  part_.set_zero();
  add_own(part_.tensor());
  device().await(group.all_reduce(part_.tensor(), ReduceOp::sum, Purpose::norm));
  device().run(Add{squares(), part_.tensor()});
}

template <class FindOwn>
bool EngineBase::any_overflow(Collectives& group, FindOwn find_own) {
  flag_.set_zero();
  find_own(flag());
  device().await(group.all_reduce(flag(), ReduceOp::max, Purpose::overflow));
  return device().read_scalar(flag(), HostSync::overflow) > 0;
}

template <class Own>
std::vector<float> EngineBase::collect(Collectives& group, std::int64_t count, Own own) {
  const Buffer all = temporary(count, DType::fp32);
  device().run(FillZero{all.tensor(DType::fp32)});
  own(all.tensor(DType::fp32));
  device().await(group.all_reduce(all.tensor(DType::fp32), ReduceOp::sum, Purpose::other));
  std::vector<float> values(static_cast<std::size_t>(count));
  device().read(all.tensor(DType::fp32), values);
  return values;
}

}  // namespace dstune
