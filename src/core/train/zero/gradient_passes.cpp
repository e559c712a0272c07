#include "core/train/zero/gradient_passes.hpp"

#include <algorithm>

#include "core/train/zero/passes.hpp"

namespace dstune {

// PyTorch makes: copy to fp32 (4 n, none if it is fp32), isnan, isinf and their union (n each), the
// union as fp32 (4 n), its maximum: 28 bytes of traffic per element of 16 bit. The Device has no
// masks, so that checks, a second fp32 copy and two bytes written stand in for their traffic.
bool has_overflow_like_zero(Device& device, Tensor gradient) {
  const Passes passes(device);
  Buffer copy;
  Tensor values = gradient;
  if (gradient.dtype != DType::fp32) {
    copy = make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
    values = copy.tensor(DType::fp32);
    passes.cast(Pass::overflow_check, gradient, values);
  }
  const Buffer masks =
      make_buffer(device, MemoryCategory::temporaries, 3 * gradient.numel, DType::int8);
  const Buffer flags =
      make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
  bool found = passes.has_inf_or_nan(Pass::overflow_check, values);
  found = passes.has_inf_or_nan(Pass::overflow_check, values) || found;
  passes.fill_zero(Pass::overflow_check, masks.tensor(DType::int8).slice(0, 2 * gradient.numel));
  passes.copy(Pass::overflow_check, values, flags.tensor(DType::fp32));
  return passes.has_inf_or_nan(Pass::overflow_check, flags.tensor(DType::fp32)) || found;
}

bool has_overflow_like_wrapper(Device& device, Tensor gradient) {
  const Buffer values =
      make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
  const Passes passes(device);
  passes.cast(Pass::overflow_check, gradient, values.tensor(DType::fp32));
  return passes.has_inf_or_nan(Pass::overflow_check, values.tensor(DType::fp32));
}

// isinf and isnan, each into a mask (n) of which any() is taken: 4 bytes per element and pass, the
// last of them a copy within the mask.
bool has_overflow_in_shard(Device& device, Tensor gradients) {
  const Passes passes(device);
  const std::int64_t half = gradients.numel / 2;
  const auto pass = [&] {
    const Buffer buffer =
        make_buffer(device, MemoryCategory::temporaries, gradients.numel, DType::int8);
    const Tensor mask = buffer.tensor(DType::int8);
    const bool found = passes.has_inf_or_nan(Pass::overflow_check, gradients);
    passes.fill_zero(Pass::overflow_check, mask);
    passes.copy(Pass::overflow_check, mask.slice(0, half), mask.slice(half, half));
    return found;
  };
  const bool infinite = pass();
  return pass() || infinite;
}

// No Device has fp64 tensors. Two fp32 copies take the same bytes and the same traffic (read e,
// write 8, read 8), and sum_of_squares accumulates in double anyway.
double sum_of_squares_in_double(Device& device, Tensor gradient) {
  const Buffer copies =
      make_buffer(device, MemoryCategory::temporaries, 2 * gradient.numel, DType::fp32);
  const Tensor first = copies.tensor(DType::fp32).slice(0, gradient.numel);
  const Tensor second = copies.tensor(DType::fp32).slice(gradient.numel, gradient.numel);
  const Passes passes(device);
  passes.cast(Pass::norm, gradient, first);
  passes.copy(Pass::norm, first, second);
  return passes.sum_of_squares(Pass::norm, second);
}

double unscale_factor(double norm, double clipping, double loss_scale) {
  const double excess = clipping > 0 ? std::max(1.0, (norm + 1e-6) / clipping) : 1.0;
  return 1 / (loss_scale * excess);
}

}  // namespace dstune
