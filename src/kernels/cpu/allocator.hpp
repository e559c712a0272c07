// Host memory as PyTorch's CPU allocator has it: from a heap that follows the rules of glibc's.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/base/units.hpp"

namespace dstune::cpu {

/// The heap of a training process, for the tensors of one device.
///
/// Where glibc's malloc() has a block from, and whether its pages must be zeroed anew, depends on
/// what was freed before: a block from the mapping threshold on is mapped for itself, unless the
/// heap has room for it, and the first such block that is freed raises the threshold to its size;
/// the heap gives its end back when twice the threshold is free there. What is free behind other
/// blocks stays, and small objects of the process lie between the tensors: so a block of less than
/// half the threshold holds the heap where it lay. Here the same rules have a heap of their own,
/// which begins anew with each experiment, so that nothing depends on what else the process does or
/// has done. Used by one thread.
class Allocator {
 public:
  Allocator();
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Aligned to 64 bytes and not touched: it costs memory only where it is written.
  /// @returns nullptr if the system has no such memory
  void* allocate(Bytes size);

  /// @param size  as given to allocate()
  void deallocate(void* data, Bytes size) noexcept;

  /// Forgets what has been, and gives the system all that is free. Where a block is in use, its
  /// part of the heap stays as it is.
  void begin_anew() noexcept;

  /// From here on the heap does not grow for a block, which is mapped instead. At most 32 MiB.
  Bytes mapping_threshold() const noexcept { return mapping_threshold_; }

  /// What the heap has of the system, in use and free, without the blocks that are mapped.
  Bytes heap_size() const noexcept { return static_cast<Bytes>(end_ - begin_); }

 private:
  bool is_in_heap(const void* data) const noexcept { return data >= begin_ && data < end_; }
  bool grow(Bytes padded);
  std::byte* take(std::pair<Bytes, std::byte*> hole, Bytes padded);
  Bytes give(std::byte* data, Bytes padded) noexcept;
  void add_hole(std::byte* data, Bytes size);
  void remove_hole(std::map<std::byte*, Bytes>::iterator hole);
  void shrink() noexcept;

  // begin_ <= top_ <= end_. Blocks and holes lie before top_, and behind it all is free.
  std::byte* begin_ = nullptr;
  std::byte* top_ = nullptr;
  std::byte* end_ = nullptr;
  std::byte* held_ = nullptr;                             ///< top_ does not fall below it
  std::map<std::byte*, Bytes> holes_;                     ///< no two of them are neighbours
  std::set<std::pair<Bytes, std::byte*>> holes_by_size_;  ///< the same
  Bytes mapping_threshold_;
  Bytes trim_threshold_;
};

/// Makes the C library keep what libraries take and give back within a product, as MKL keeps its
/// own: of this process, whatever it has freed before.
void keep_freed_memory() noexcept;

/// Gives the system what the C library keeps.
void trim_heap() noexcept;

}  // namespace dstune::cpu
