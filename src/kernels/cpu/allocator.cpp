#include "kernels/cpu/allocator.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <new>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dstune::cpu {

namespace {

// Under a sanitizer each block below 32 MiB is of operator new, whose ends it watches.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DSTUNE_WATCHES_BLOCKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DSTUNE_WATCHES_BLOCKS
#endif
#ifdef DSTUNE_WATCHES_BLOCKS
constexpr bool kWatchesBlocks = true;
#else
constexpr bool kWatchesBlocks = false;
#endif

// malloc/malloc.c of glibc: where its thresholds begin, and how far a freed block may raise them.
constexpr Bytes kFirstThreshold = Bytes{128} << 10U;   // DEFAULT_MMAP_THRESHOLD, and of trimming
constexpr Bytes kLargestThreshold = Bytes{32} << 20U;  // DEFAULT_MMAP_THRESHOLD_MAX
constexpr Bytes kTopPad = Bytes{128} << 10U;           // DEFAULT_TOP_PAD, beyond what is asked for
constexpr Bytes kTrimsAfter = Bytes{64} << 10U;        // FASTBIN_CONSOLIDATION_THRESHOLD

constexpr Bytes kAlignment = 64;  // c10::gAlignment
constexpr Bytes kHeader = 16;     // that malloc has before each block

Bytes page() { return static_cast<Bytes>(sysconf(_SC_PAGESIZE)); }
constexpr Bytes rounded(Bytes size, Bytes to) { return (size + to - 1) / to * to; }
constexpr Bytes padded_size(Bytes size) { return rounded(size + kHeader, kAlignment); }

void* map(void* where, Bytes size, int flags) {
  void* mapping = mmap(where, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return mapping == MAP_FAILED ? nullptr : mapping;
}

/// Where there is room for a heap to grow: its first bytes, kTopPad of them, are mapped, and nobody
/// has what is behind them yet. The system fills such a gap from its far end.
std::byte* find_room() {
  constexpr Bytes kRoom = Bytes{1} << 40U;
  for (Bytes room = kRoom; room > kTopPad; room /= 2) {
    void* found =
        mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) continue;
    auto* const begin = static_cast<std::byte*>(found);
    munmap(begin + kTopPad, room - kTopPad);
    mprotect(begin, kTopPad, PROT_READ | PROT_WRITE);
    return begin;
  }
  return nullptr;
}

}  // namespace

Allocator::Allocator()
    : mapping_threshold_(kWatchesBlocks ? kLargestThreshold : kFirstThreshold),
      trim_threshold_(kFirstThreshold) {
  if (kWatchesBlocks) return;
  begin_ = top_ = held_ = find_room();
  if (begin_ != nullptr) end_ = begin_ + kTopPad;
}

Allocator::~Allocator() {
  if (begin_ != nullptr) munmap(begin_, heap_size());
}

// Holes are looked at before the end of the heap, the smallest that is large enough first.
void* Allocator::allocate(Bytes size) {
  if (size > std::numeric_limits<Bytes>::max() / 2) return nullptr;
  const Bytes padded = padded_size(size);
  if (kWatchesBlocks && padded < mapping_threshold_) {
    return ::operator new (size, std::align_val_t{kAlignment}, std::nothrow);
  }
  const auto hole = holes_by_size_.lower_bound({padded, nullptr});
  std::byte* data = top_;
  if (hole != holes_by_size_.end()) {
    data = take(*hole, padded);
  } else {
    if (static_cast<Bytes>(end_ - top_) < padded) {
      if (padded >= mapping_threshold_ || !grow(padded)) return map(nullptr, padded, 0);
    }
    top_ += padded;
  }
  if (padded < mapping_threshold_ / 2) held_ = std::max(held_, data + padded);
  return data;
}

std::byte* Allocator::take(std::pair<Bytes, std::byte*> hole, Bytes padded) {
  const auto [size, data] = hole;
  remove_hole(holes_.find(data));
  if (size > padded) add_hole(data + padded, size - padded);
  return data;
}

bool Allocator::grow(Bytes padded) {
  if (begin_ == nullptr) return false;
  const Bytes missing = rounded(padded + kTopPad - static_cast<Bytes>(end_ - top_), page());
  void* const more = map(end_, missing, MAP_FIXED_NOREPLACE);
  if (more == nullptr) return false;
  if (more != end_) {  // a kernel that does not know the flag takes the address as a wish
    munmap(more, missing);
    return false;
  }
  end_ += missing;
  return true;
}

void Allocator::deallocate(void* data, Bytes size) noexcept {
  const Bytes padded = padded_size(size);
  if (is_in_heap(data)) {
    const Bytes freed = give(static_cast<std::byte*>(data), padded);
    if (freed >= kTrimsAfter && static_cast<Bytes>(end_ - top_) >= trim_threshold_) shrink();
    return;
  }
  if (kWatchesBlocks && padded < mapping_threshold_) {
    return ::operator delete (data, std::align_val_t{kAlignment});
  }
  munmap(data, padded);
  const Bytes mapped = rounded(padded, page());
  if (mapped <= mapping_threshold_ || mapped > kLargestThreshold) return;
  mapping_threshold_ = mapped;
  trim_threshold_ = 2 * mapped;
}

/// Unites a block with the holes beside it. @returns their bytes
Bytes Allocator::give(std::byte* data, Bytes padded) noexcept {
  const auto next = holes_.lower_bound(data);
  std::byte* last = data + padded;
  if (next != holes_.end() && next->first == last) {
    last += next->second;
    remove_hole(next);
  }
  const auto behind = holes_.lower_bound(data);
  if (behind != holes_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == data) {
      data = before->first;
      remove_hole(before);
    }
  }
  const auto freed = static_cast<Bytes>(last - data);
  if (last == top_) top_ = last = std::max(data, held_);
  try {
    if (data < last) add_hole(data, static_cast<Bytes>(last - data));
  } catch (const std::bad_alloc&) {
    // What cannot be written down is lost until the process ends.
  }
  return freed;
}

void Allocator::add_hole(std::byte* data, Bytes size) {
  holes_by_size_.emplace(size, data);
  holes_.emplace(data, size);
}

void Allocator::remove_hole(std::map<std::byte*, Bytes>::iterator hole) {
  holes_by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

/// Leaves kTopPad bytes behind the last block.
void Allocator::shrink() noexcept {
  const Bytes free = static_cast<Bytes>(end_ - top_);
  if (free <= kTopPad) return;
  const Bytes surplus = (free - kTopPad) / page() * page();
  if (surplus > 0 && munmap(end_ - surplus, surplus) == 0) end_ -= surplus;
}

void Allocator::begin_anew() noexcept {
  if (kWatchesBlocks || begin_ == nullptr) return;
  const auto hole = holes_.begin();
  const bool has_blocks = top_ != begin_ && (holes_.size() != 1 || hole->first != begin_ ||
                                             begin_ + hole->second != top_);
  if (!has_blocks) {
    holes_.clear();
    holes_by_size_.clear();
    top_ = held_ = begin_;
  }
  shrink();
  const auto used = rounded(static_cast<Bytes>(top_ - begin_), page());
  if (used < heap_size()) madvise(begin_ + used, heap_size() - used, MADV_DONTNEED);
  mapping_threshold_ = trim_threshold_ = kFirstThreshold;
}

void keep_freed_memory() noexcept {
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(kLargestThreshold));
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

void trim_heap() noexcept {
  // A sanitizer has a heap of its own, and glibc's would be set up by this call: by two threads at
  // once, it counts one of them and aborts when the other ends.
  if (!kWatchesBlocks) malloc_trim(0);
}

}  // namespace dstune::cpu
