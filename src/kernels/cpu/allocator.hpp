// Host memory that is kept for reuse, like PyTorch's caching allocator.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/base/units.hpp"

namespace dstune::cpu {

/// Blocks are aligned to 64 bytes (large ones to 2 MiB, on huge pages where the system has them)
/// and not touched: a large block costs memory only where it is written. A freed block serves the
/// next request of exactly its size.
///
/// In use plus cached never exceeds `limit` because of the cache: it is emptied first.
class Allocator {
 public:
  explicit Allocator(Bytes limit) : limit_(limit) {}
  ~Allocator() { trim(); }
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// nullptr if the system has no such memory, even with the cache emptied.
  void* allocate(Bytes size);
  /// @param size  as given to allocate()
  void free(void* data, Bytes size) noexcept;
  /// Gives all cached blocks back to the system.
  void trim() noexcept;

  Bytes cached() const noexcept { return cached_; }

 private:
  void* reuse(Bytes size) noexcept;

  Bytes limit_;
  Bytes in_use_ = 0;
  Bytes cached_ = 0;
  std::unordered_map<Bytes, std::vector<void*>> free_;  ///< by size
};

}  // namespace dstune::cpu
