// fp16 loss scaling: the factor that keeps small gradients above zero, and its reaction to
// overflow.
#pragma once

#include <cstdint>

#include "core/base/error.hpp"
#include "core/device/dtype.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

/// Thrown on every rank at once when gradients overflow at the smallest scale: training cannot go
/// on.
class LossScaleExhausted : public Error {
 public:
  using Error::Error;
};

/// The scale is dynamic for fp16 unless a static one is configured, and 1 for the other types.
class LossScaler {
 public:
  /// ZeRO's scaler waits for `hysteresis` overflows before it halves the scale; the wrappers of
  /// stage 0 halve it at once and stay at the minimum.
  enum class Kind { zero, wrapper };

  LossScaler(const LossScaleConfig& config, DType dtype, Kind kind);

  double scale() const noexcept { return scale_; }

  /// Called after every step, skipped or not.
  /// @throws LossScaleExhausted  after an overflow at the smallest scale
  void update(bool overflow);

 private:
  void shrink();

  LossScaleConfig config_;
  Kind kind_;
  bool dynamic_;
  double scale_ = 1;
  int hysteresis_left_;
  std::int64_t step_ = 0;
  std::int64_t last_overflow_ = -1;
};

}  // namespace dstune
