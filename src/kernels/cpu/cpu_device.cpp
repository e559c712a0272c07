#include "kernels/cpu/cpu_device.hpp"

#include <chrono>
#include <new>

#include "core/base/host/memory_bounds.hpp"

namespace dstune::cpu {

CpuDevice::CpuDevice(Bytes memory_limit, int threads) : Device(memory_limit), threads_(threads) {}

host::Threads& CpuDevice::host_team() {
  if (!host_team_) host_team_ = std::make_unique<host::Threads>(threads_);
  return *host_team_;
}

Seconds CpuDevice::now() const {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A busy host answers as little as Python does, but the rank's own housekeeping goes on.
void CpuDevice::spend_host_time(Seconds time) {
  const Seconds end = now() + time;
  while (now() < end) tick();
}

void CpuDevice::trim() {
  products_.trim();
  scratch_ = {};
  allocator_.begin_anew();
  trim_heap();
}

void* CpuDevice::do_allocate(MemoryCategory category, Bytes size) {
  void* data = allocator_.allocate(size);
  if (data == nullptr) {
    throw OutOfMemoryError(category, size, memory().in_use() - size, memory().limit(), 0,
                           why_refused());
  }
  return data;
}

void* CpuDevice::do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) {
  if (tier == Tier::locked) {
    return host::allocate_locked(category, size, host_memory().held() - size,
                                 host_memory().limit());
  }
  void* data = allocator_.allocate(size);
  if (data == nullptr) {
    throw OutOfMemoryError(category, size, host_memory().held() - size, host_memory().limit(), 0,
                           why_refused(), tier);
  }
  return data;
}

void CpuDevice::do_free_on_host(Tier tier, void* data, Bytes size) noexcept {
  if (tier == Tier::locked) return host::free_locked(data, size);
  do_free(data, size);
}

void CpuDevice::do_free(void* data, Bytes size) noexcept { allocator_.deallocate(data, size); }

float* CpuDevice::scratch(std::int64_t elements) {
  const auto size = static_cast<std::size_t>(elements);
  if (scratch_.size() < size) {
    scratch_.clear();  // nothing of it need be copied
    try {
      scratch_.resize(size);
    } catch (const std::bad_alloc&) {
      throw OutOfMemoryError(MemoryCategory::temporaries, size * sizeof(float), memory().in_use(),
                             memory().limit(), 0, why_refused());
    }
  }
  return scratch_.data();
}

}  // namespace dstune::cpu
