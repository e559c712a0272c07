// Small objects that a step makes and drops by the thousand.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace dstune {

/// Base of objects whose memory is kept, when they are deleted, for the next object of their size.
/// They must be deleted in the thread that made them. That takes a few instructions, where malloc()
/// takes a hundred. A thread's memory is given back when the thread ends. Under a sanitizer every
/// object has memory of its own, so that the use of a deleted one is seen.
class Pooled {
 public:
  static void* operator new(std::size_t size);
  static void operator delete(void* object, std::size_t size) noexcept;

 private:
  static constexpr std::size_t kUnit = alignof(std::max_align_t);
  static constexpr std::size_t kLargest = 1024;  ///< bytes; malloc() makes larger objects

  struct Free {
    Free* next;
  };
  /// One list for each size, in units.
  using FreeLists = std::array<Free*, kLargest / kUnit + 1>;

  static std::size_t units(std::size_t size) { return (size + kUnit - 1) / kUnit; }
  static void* make_more(std::size_t size);

  static constinit thread_local FreeLists free_lists;
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DSTUNE_POOLS_NOTHING
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DSTUNE_POOLS_NOTHING
#endif

#ifdef DSTUNE_POOLS_NOTHING
inline void* Pooled::operator new(std::size_t size) { return ::operator new(size); }
inline void Pooled::operator delete(void* object, std::size_t /*size*/) noexcept {
  ::operator delete(object);
}
#else
inline void* Pooled::operator new(std::size_t size) {
  if (size > kLargest) return ::operator new(size);
  Free*& first = free_lists[units(size)];
  if (first == nullptr) return make_more(size);
  Free* const piece = first;
  first = piece->next;
  return piece;
}
inline void Pooled::operator delete(void* object, std::size_t size) noexcept {
  if (size > kLargest) return ::operator delete(object);
  Free*& first = free_lists[units(size)];
  first = new (object) Free{first};
}
#endif

}  // namespace dstune
