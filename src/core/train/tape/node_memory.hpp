// Memory for many small objects that go together.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace dstune {

/// Gives memory out one piece behind the other, and takes it back all at once, for the next time.
/// Its blocks are so small that malloc() keeps them when they are freed: larger ones would be
/// mapped anew, a page fault for every 4 KiB, in each of a plan's many dry runs.
class NodeMemory {
 public:
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);

  /// @returns memory aligned to kAlignment, good until rewind()
  void* allocate(std::size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (size > kBlock - used_ || blocks_.empty()) next_block(size);
    std::byte* const place = blocks_[block_].get() + used_;
    used_ += size;
    return place;
  }
  void rewind() {
    block_ = 0;
    used_ = 0;
  }

 private:
  static constexpr std::size_t kBlock = std::size_t{16} << 10U;

  void next_block(std::size_t size);

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::size_t block_ = 0;  // that is being filled
  std::size_t used_ = 0;   // of it
};

}  // namespace dstune
