#include "core/train/zero/adam_state.hpp"

#include "core/train/zero/passes.hpp"

namespace dstune {

void AdamMoments::ensure(Device& device, std::int64_t numel) {
  if (exp_avg_) return;
  exp_avg_ = make_buffer(device, MemoryCategory::optimizer, numel, DType::fp32);
  exp_avg_sq_ = make_buffer(device, MemoryCategory::optimizer, numel, DType::fp32);
  device.fill_zero(exp_avg_.tensor(DType::fp32));
  device.fill_zero(exp_avg_sq_.tensor(DType::fp32));
}

void AdamMoments::update(Device& device, const AdamStep& step, Tensor gradient, Tensor parameter) {
  ensure(device, parameter.numel);
  Passes(device).adam(step, gradient, parameter, exp_avg_.tensor(DType::fp32),
                      exp_avg_sq_.tensor(DType::fp32));
}

}  // namespace dstune
