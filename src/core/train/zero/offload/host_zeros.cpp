#include "core/train/zero/offload/host_zeros.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {

Buffer HostZeros::make(MemoryCategory category, std::int64_t numel, DType dtype) {
  Buffer zeros = make_buffer(device_, category, numel, dtype, Tier::pageable);
  device_.run_on_host(FillZero{zeros.tensor(dtype)});
  if (!pins_) return zeros;
  original_ = std::move(zeros);
  Buffer pinned = make_buffer(device_, category, numel, dtype, Tier::pinned);
  device_.run_on_host(Copy{original_.tensor(dtype), pinned.tensor(dtype)});
  return pinned;
}

Buffer HostZeros::make_only(MemoryCategory category, std::int64_t numel, DType dtype) {
  HostZeros own(device_, pins_);
  return own.make(category, numel, dtype);
}

}  // namespace dstune
