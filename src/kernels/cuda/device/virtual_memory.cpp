#include "kernels/cuda/device/virtual_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/memory/caching_model.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"

#define DSTUNE_DRIVER_CHECK(call) DSTUNE_CUDA_CHECK(as_runtime_error(call))

namespace dstune::cuda {

namespace {

CUmemLocation location_of(int device) {
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device;
  return location;
}

CUmemAllocationProp pages_of(int device) {
  CUmemAllocationProp pages{};
  pages.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  pages.location = location_of(device);
  return pages;
}

/// Memory without addresses. Once it is mapped it lives as long as its mapping does.
class Pages {
 public:
  Pages(const Driver& driver, Bytes size, int device) : driver_(driver) {
    const CUmemAllocationProp pages = pages_of(device);
    DSTUNE_DRIVER_CHECK(driver_.MemCreate(&handle_, size, &pages, 0));
  }
  ~Pages() { driver_.MemRelease(handle_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  CUmemGenericAllocationHandle get() const noexcept { return handle_; }

 private:
  const Driver& driver_;
  CUmemGenericAllocationHandle handle_ = 0;
};

/// "" if a segment can be made. Some virtual machines and containers say that they can, and cannot.
std::string why_trial_fails(const Driver& driver, int device) {
  try {
    const ReservedRange range(driver, CachingModel::kSegmentUnit);
    const MappedPages pages(driver, range, device);
  } catch (const CudaError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

ReservedRange::ReservedRange(const Driver& driver, Bytes size) : driver_(driver), size_(size) {
  DSTUNE_DRIVER_CHECK(driver_.MemAddressReserve(&begin_, size_, 0, 0, 0));
}

ReservedRange::~ReservedRange() { driver_.MemAddressFree(begin_, size_); }

MappedPages::MappedPages(const Driver& driver, const ReservedRange& range, int device)
    : driver_(driver), range_(range) {
  const Pages pages(driver_, range_.size(), device);
  DSTUNE_DRIVER_CHECK(driver_.MemMap(range_.begin(), range_.size(), 0, pages.get(), 0));
  CUmemAccessDesc access{};
  access.location = location_of(device);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CUresult result = driver_.MemSetAccess(range_.begin(), range_.size(), &access, 1);
  if (result == CUDA_SUCCESS) return;
  driver_.MemUnmap(range_.begin(), range_.size());
  DSTUNE_DRIVER_CHECK(result);
}

MappedPages::~MappedPages() { driver_.MemUnmap(range_.begin(), range_.size()); }

std::string VirtualMemory::why_unavailable(int device, const Library& library) {
  if (!library.problem.empty()) return library.problem;
  const Driver& driver = cuda::driver();
  CUdevice handle = 0;
  DSTUNE_DRIVER_CHECK(driver.DeviceGet(&handle, device));
  int is_supported = 0;
  DSTUNE_DRIVER_CHECK(driver.DeviceGetAttribute(
      &is_supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, handle));
  if (is_supported == 0) return "the GPU has no virtual memory management";
  std::size_t granularity = 0;
  const CUmemAllocationProp pages = pages_of(device);
  DSTUNE_DRIVER_CHECK(
      driver.MemGetAllocationGranularity(&granularity, &pages, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  if (granularity == 0 || CachingModel::kSegmentUnit % granularity != 0) {
    return concat("the GPU's memory comes in units of ", format_bytes(granularity));
  }
  return why_trial_fails(driver, device);
}

VirtualMemory::VirtualMemory(int device, Most most)
    : driver_(driver()), device_(device), most_(std::move(most)) {}

VirtualMemory::Segment VirtualMemory::make(Bytes size) {
  const Bytes room = std::max(most_(held_), held_) - held_;
  if (size > room) {
    return {nullptr,
            concat("of ", format_bytes(device_space().free), " free on the GPU, NCCL and ",
                   "kernels that are loaded later may need what is beyond ", format_bytes(room))};
  }
  // Addresses and mappings may take memory too: a full GPU is one whichever call says so.
  try {
    auto parts = std::make_unique<Parts>(driver_, size, device_);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the driver tells an address
    void* data = reinterpret_cast<void*>(parts->range.begin());
    segments_.emplace(data, std::move(parts));
    held_ += size;
    return {data, ""};
  } catch (const OutOfMemoryError&) {
    return {nullptr, concat("the driver has none, with ", format_bytes(device_space().free),
                            " free on the GPU")};
  }
}

void VirtualMemory::give_back(void* data, Bytes size) noexcept {
  segments_.erase(data);
  held_ -= size;
}

}  // namespace dstune::cuda
