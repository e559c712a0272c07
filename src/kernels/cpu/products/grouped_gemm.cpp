#include "kernels/grouped_gemm.hpp"

#include <cstring>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const GroupedGemm& op) {
  multiply_groups(op, elements<std::int32_t>(op.groups.ends),
                  [this](const Gemm& product) { compute(product); });
}

void CpuDevice::compute(const GroupedGemmByRows& op) {
  multiply_groups(
      op, elements<std::int32_t>(op.groups.ends), [this](const Gemm& product) { compute(product); },
      [](const Matrix& c) { std::memset(c.data, 0, c.size()); });
}

}  // namespace dstune::cpu
