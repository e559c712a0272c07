#include "core/train/zero/loss_scaler.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/text.hpp"

namespace dstune {

LossScaler::LossScaler(const LossScaleConfig& config, DType dtype, Kind kind)
    : config_(config),
      kind_(kind),
      dynamic_(dtype == DType::fp16 && config.static_scale == 0),
      hysteresis_left_(kind == Kind::zero ? config.hysteresis : 1) {
  if (dtype != DType::fp16) return;
  scale_ = dynamic_ ? std::ldexp(1.0, config.initial_scale_power) : config.static_scale;
}

void LossScaler::update(bool overflow) {
  if (!dynamic_) return;
  if (overflow) {
    shrink();
    last_overflow_ = step_;
  } else {
    const int full = kind_ == Kind::zero ? config_.hysteresis : 1;
    if (config_.consecutive_hysteresis) hysteresis_left_ = full;
    if ((step_ - last_overflow_) % config_.window == 0) {
      hysteresis_left_ = full;
      scale_ *= 2;
    }
  }
  ++step_;
}

void LossScaler::shrink() {
  if (hysteresis_left_ > 1) {
    --hysteresis_left_;
    return;
  }
  if (kind_ == Kind::zero && scale_ <= config_.min_scale) {
    throw LossScaleExhausted(
        concat("fp16 gradients overflow at the smallest loss scale, ", config_.min_scale));
  }
  scale_ = std::max(scale_ / 2, config_.min_scale);
}

}  // namespace dstune
