#include "core/train/tape/pooled.hpp"

#include <memory>
#include <vector>

namespace dstune {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10U;

}  // namespace

constinit thread_local Pooled::FreeLists Pooled::free_lists{};

void* Pooled::make_more(std::size_t size) {
  struct Blocks {
    Blocks() = default;
    ~Blocks() { free_lists = {}; }
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;

    std::vector<std::unique_ptr<std::byte[]>> all;
    std::size_t left = 0;  // bytes of the last block
  };
  static thread_local Blocks blocks;
  const std::size_t wanted = units(size) * kUnit;
  if (wanted > blocks.left) {
    blocks.all.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlock));
    blocks.left = kBlock;
  }
  std::byte* const piece = blocks.all.back().get() + (kBlock - blocks.left);
  blocks.left -= wanted;
  return piece;
}

}  // namespace dstune
