// A product for each group, as torch does it where it has no kernel for all at once: the host waits
// to know how many rows each has.
#include "kernels/grouped_gemm.hpp"

#include <cassert>
#include <vector>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

std::vector<std::int32_t> CudaDevice::ends_of(const RowGroups& groups) {
  assert(groups.ends.size() <= Gpu::kStaging);
  copy_and_wait(gpu_.staging(), groups.ends.data, groups.ends.size(), cudaMemcpyDeviceToHost);
  const auto* const ends = static_cast<const std::int32_t*>(gpu_.staging());
  return {ends, ends + groups.count};
}

void CudaDevice::compute(const GroupedGemm& op) {
  multiply_groups(op, ends_of(op.groups).data(),
                  [this](const Gemm& product) { products_.run(product, stream()); });
}

void CudaDevice::compute(const GroupedGemmByRows& op) {
  multiply_groups(
      op, ends_of(op.groups).data(),
      [this](const Gemm& product) { products_.run(product, stream()); },
      [this](const Matrix& c) {
        DSTUNE_CUDA_CHECK(cudaMemsetAsync(c.data, 0, c.size(), stream()));
      });
}

}  // namespace dstune::cuda
