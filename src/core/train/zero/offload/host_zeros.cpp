#include "core/train/zero/offload/host_zeros.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {

Buffer HostZeros::zeros(MemoryCategory category, std::int64_t numel, DType dtype) {
  Buffer zeros = make_buffer(device_, category, numel, dtype, Tier::pageable);
  device_.run_on_host(FillZero{zeros.tensor(dtype)});
  return zeros;
}

Buffer HostZeros::pinned(const Buffer& original, MemoryCategory category, DType dtype) {
  const Tensor from = original.tensor(dtype);
  Buffer pinned = make_buffer(device_, category, from.numel, dtype, Tier::pinned);
  device_.run_on_host(Copy{from, pinned.tensor(dtype)});
  return pinned;
}

Buffer HostZeros::make(MemoryCategory category, std::int64_t numel, DType dtype) {
  Buffer made = zeros(category, numel, dtype);
  if (!pins_) return made;
  original_ = std::move(made);
  return pinned(original_, category, dtype);
}

Buffer HostZeros::make_only(MemoryCategory category, std::int64_t numel, DType dtype) {
  Buffer variable;
  make_in(variable, category, numel, dtype);
  return variable;
}

void HostZeros::make_in(Buffer& variable, MemoryCategory category, std::int64_t numel,
                        DType dtype) {
  variable = zeros(category, numel, dtype);
  if (pins_) variable = pinned(variable, category, dtype);
}

}  // namespace dstune
