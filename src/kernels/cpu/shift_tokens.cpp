#include "core/device/operations/shift_tokens.hpp"

#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const ShiftTokens& op) {
  assert(op.labels.numel == op.out.numel && op.out.numel % op.sequence == 0);
  const auto* const labels = elements<std::int64_t>(op.labels);
  auto* const out = elements<std::int64_t>(op.out);
  for_chunks(*this, op.out.numel, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = i % op.sequence == 0 ? op.start : labels[i - 1];
    }
  });
}

}  // namespace dstune::cpu
