#include "kernels/cpu/allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include <sys/mman.h>

namespace dstune::cpu {

namespace {

constexpr Bytes kHugePage = Bytes{2} << 20U;
constexpr Bytes kLarge = kHugePage;
constexpr std::align_val_t kAlignment{64};

Bytes round_to_huge_pages(Bytes size) { return (size + kHugePage - 1) / kHugePage * kHugePage; }

/// Whole huge pages at an address that is a multiple of their size; nullptr if there is no room.
void* map_large(Bytes size) {
  if (size > std::numeric_limits<std::ptrdiff_t>::max() - 2 * kHugePage) return nullptr;
  const Bytes length = round_to_huge_pages(size);
  void* mapping = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapping);
  const Bytes head = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (head > 0) munmap(begin, head);
  if (head < kHugePage) munmap(begin + head + length, kHugePage - head);
  madvise(begin + head, length, MADV_HUGEPAGE);  // a hint: kernels without it are only slower
  return begin + head;
}

void* system_allocate(Bytes size) {
  if (size >= kLarge) return map_large(size);
  return ::operator new(size, kAlignment, std::nothrow);
}

void system_free(void* data, Bytes size) noexcept {
  if (size >= kLarge) {
    munmap(data, round_to_huge_pages(size));
  } else {
    ::operator delete(data, kAlignment);
  }
}

}  // namespace

void* Allocator::allocate(Bytes size) {
  void* data = reuse(size);
  if (data == nullptr) {
    const bool fits = size <= limit_ && in_use_ + cached_ <= limit_ - size;
    if (!fits) trim();
    data = system_allocate(size);
  }
  if (data == nullptr && cached_ > 0) {
    trim();
    data = system_allocate(size);
  }
  if (data != nullptr) in_use_ += size;
  return data;
}

void* Allocator::reuse(Bytes size) noexcept {
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  void* data = found->second.back();
  found->second.pop_back();
  cached_ -= size;
  return data;
}

void Allocator::free(void* data, Bytes size) noexcept {
  in_use_ -= size;
  try {
    free_[size].push_back(data);
    cached_ += size;
  } catch (const std::bad_alloc&) {
    system_free(data, size);
  }
}

void Allocator::trim() noexcept {
  for (const auto& [size, blocks] : free_) {
    for (void* block : blocks) system_free(block, size);
  }
  free_.clear();
  cached_ = 0;
}

}  // namespace dstune::cpu
