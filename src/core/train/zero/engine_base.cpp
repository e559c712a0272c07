#include "core/train/zero/engine_base.hpp"

#include <cmath>

#include "core/device/operations/optimizers.hpp"

namespace dstune {

namespace {

// The type in which DeepSpeed adds up squares over the ranks.
DType norm_dtype(const StepConfig& config) {
  return config.stage == 3 && !config.offloads_optimizer() ? DType::fp64 : DType::fp32;
}

}  // namespace

EngineBase::EngineBase(const EngineContext& context, LossScaler::Kind scaler)
    : context_(context),
      groups_(make_parameter_groups(context.config.optimizer, *context.parameters)),
      scaler_(context.config.loss_scale, context.config.dtype, scaler),
      squares_(*context.device, norm_dtype(context.config)),
      part_(*context.device, norm_dtype(context.config)),
      factor_(*context.device),
      flag_(*context.device, DType::uint8) {
  for (std::size_t tensor = 0; tensor < tensor_count(); ++tensor) {
    if (is_trainable(tensor)) trained_.push_back(tensor);
  }
  // It is torch's Adagrad that leaves it, not DeepSpeed's for the CPU.
  if (!config().offloads_optimizer() &&
      leaves_unused_state(config().optimizer, config().stage, config().dtype)) {
    unused_state_ = make_buffer(device(), MemoryCategory::optimizer, parameters().trainable_total(),
                                config().dtype);
  }
}

StepResult EngineBase::finish(bool overflow) {
  if (overflow) {
    norm_scale_.reset();
  } else {
    ++updates_;
  }
  scaler_.update(overflow);
  return {overflow, scaler_.scale()};
}

bool EngineBase::any_overflow_of_hosts(Collectives& group, bool own) {
  const Tensor flag = part_.tensor();
  device().run(FillConstant{flag, own ? 1.0 : 0.0});
  device().await(group.all_reduce(flag, ReduceOp::max, Purpose::overflow));
  return device().read_scalar(flag, HostSync::overflow) > 0;
}

void EngineBase::start_norm() {
  squares_.set_zero();
  norm_scale_ = loss_scale();
}

Tensor EngineBase::clip_factor() {
  device().run(ClipFactor{.squares = squares(),
                          .clipping = config().gradient_clipping,
                          .loss_scale = loss_scale(),
                          .factor = factor_.tensor()});
  return factor_.tensor();
}

double EngineBase::grad_norm() {
  if (!norm_scale_) return 0;
  float squares = 0;
  device().read(squares_.tensor(), {&squares, 1});
  return std::sqrt(static_cast<double>(squares)) / *norm_scale_;
}

}  // namespace dstune
