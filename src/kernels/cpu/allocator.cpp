#include "kernels/cpu/allocator.hpp"

#include <new>

#include <malloc.h>
#include <sys/mman.h>

namespace dstune::cpu {

namespace {

constexpr std::align_val_t kAlignment{64};  // c10::gAlignment

// malloc would not do, which asks for memory that is there: a bucket may be larger than what is
// written.
void* map(Bytes size) {
  void* mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

}  // namespace

void* allocate(Bytes size) {
  return size >= kFromSystem ? map(size) : ::operator new(size, kAlignment, std::nothrow);
}

void deallocate(void* data, Bytes size) noexcept {
  if (size >= kFromSystem) {
    munmap(data, size);
  } else {
    ::operator delete(data, kAlignment);
  }
}

void trim_heap() noexcept { malloc_trim(0); }

}  // namespace dstune::cpu
