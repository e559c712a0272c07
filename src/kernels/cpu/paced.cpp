// Operations for which the training's library has another time than this device: where the profile
// knows it (HostOverhead::operations) and it is longer, the step waits until it has passed.
#include <cstdint>
#include <optional>

#include "core/device/host_overhead.hpp"
#include "core/device/operations/activations.hpp"
#include "core/device/operations/attention.hpp"
#include "core/device/operations/norms.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/operations/softmax.hpp"
#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

namespace {

constexpr auto kForward = &OperationRate::forward;
constexpr auto kBackward = &OperationRate::backward;

std::optional<TimedOperation> timed(Activation kind) {
  switch (kind) {
    case Activation::gelu:
      return TimedOperation::gelu;
    case Activation::gelu_tanh:
      return TimedOperation::gelu_tanh;
    case Activation::silu:
      return TimedOperation::silu;
    case Activation::relu:
    case Activation::tanh:
    case Activation::sigmoid:
    case Activation::affine:
      break;
  }
  return std::nullopt;
}

}  // namespace

void CpuDevice::wait_until(Seconds end) {
  const Seconds rest = end - now();
  if (rest <= 0) return;
  spend_host_time(rest);
  ledger().add_library_wait(rest);
}

template <class Operation>
void CpuDevice::paced(const Operation& op, std::optional<TimedOperation> operation,
                      Seconds OperationRate::*pass, DType dtype, std::int64_t elements) {
  const Seconds begin = now();
  calculate(op);
  if (!operation) return;
  const auto* rate = operation_rate(host_overhead(), *operation, dtype, products_.threads());
  if (rate != nullptr) wait_until(begin + static_cast<double>(elements) * rate->*pass);
}

void CpuDevice::compute(const Dropout& op) {
  paced(op, TimedOperation::dropout, kForward, op.in.dtype, op.in.numel);
}
void CpuDevice::compute(const DropoutBackward& op) {
  paced(op, TimedOperation::dropout, kBackward, op.d_in.dtype, op.d_in.numel);
}

void CpuDevice::compute(const Activate& op) {
  paced(op, timed(op.kind), kForward, op.x.dtype, op.x.numel);
}
void CpuDevice::compute(const ActivateBackward& op) {
  paced(op, timed(op.kind), kBackward, op.d_x.dtype, op.d_x.numel);
}

void CpuDevice::compute(const GeluNew& op) {
  paced(op, TimedOperation::gelu_new, kForward, op.x.dtype, op.x.numel);
}
void CpuDevice::compute(const GeluNewBackward& op) {
  paced(op, TimedOperation::gelu_new, kBackward, op.x.dtype, op.x.numel);
}

// A gate takes at least what its activation takes by itself.
void CpuDevice::compute(const Glu& op) {
  paced(op, timed(op.kind), kForward, op.product.dtype, op.product.numel);
}
void CpuDevice::compute(const GluBackward& op) {
  paced(op, timed(op.kind), kBackward, op.d_product.dtype, op.d_product.numel);
}

void CpuDevice::compute(const LayerNorm& op) {
  paced(op, TimedOperation::layer_norm, kForward, op.x.dtype, op.x.numel());
}
void CpuDevice::compute(const LayerNormBackward& op) {
  paced(op, TimedOperation::layer_norm, kBackward, op.x.dtype, op.x.numel());
}

void CpuDevice::compute(const RmsNorm& op) {
  paced(op, TimedOperation::rms_norm, kForward, op.x.dtype, op.x.numel());
}
void CpuDevice::compute(const RmsNormBackward& op) {
  paced(op, TimedOperation::rms_norm, kBackward, op.d_x.dtype, op.d_x.numel());
}

void CpuDevice::compute(const Rotate& op) {
  paced(op, TimedOperation::rotary, op.inverse ? kBackward : kForward, op.out.dtype,
        op.out.numel());
}

void CpuDevice::compute(const LogSoftmax& op) {
  paced(op, TimedOperation::log_softmax, kForward, op.logits.dtype, op.logits.numel());
}
void CpuDevice::compute(const LogSoftmaxBackward& op) {
  paced(op, TimedOperation::log_softmax, kBackward, op.d_logits.dtype, op.d_logits.numel());
}

}  // namespace dstune::cpu
