// Counts memory as PyTorch's CUDA caching allocator would, and divides it where there is any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/device/memory/segment_source.hpp"
#include "core/device/stream.hpp"

namespace dstune {

/// How a budget counts.
enum class AllocatorModel {
  exact,    ///< bytes as asked for
  caching,  ///< the segments that PyTorch's caching allocator would hold for them
};

/// c10/cuda/CUDACachingAllocator.cpp (PyTorch 2.5), with its defaults: no max_split_size, no
/// expandable segments, no rounding to powers of two, no garbage collection.
///
/// A request is rounded to 512 bytes (kMinBlockSize). Up to 1 MiB (kSmallSize) it comes from the
/// small pool, whose segments have 2 MiB (kSmallBuffer). A larger one comes from the large pool,
/// with segments of 20 MiB (kLargeBuffer) below 10 MiB (kMinLargeAlloc), else of the request's size
/// rounded to 2 MiB (kRoundLarge). It gets the smallest free block of its pool and stream that
/// holds it, the lowest address among equals, and gives the rest back if that is worth it: 512
/// bytes in the small pool, more than 1 MiB in the large one. A free block unites with its free
/// neighbours.
///
/// Segments lie in the order in which they were made, since the addresses of cudaMalloc decide
/// among equal blocks; nothing is known of the driver's own rounding. That order is the model's own
/// also where a source gives the segments memory, so that a plan and a run choose the same blocks.
class CachingModel {
 public:
  using Block = std::int32_t;
  static constexpr Block kNoBlock = -1;
  /// Every segment is a multiple of it.
  static constexpr Bytes kSegmentUnit = Bytes{2} << 20U;

  /// @param source  of the segments' memory, which must outlive this; none: they are an account
  explicit CachingModel(Bytes limit, SegmentSource* source = nullptr)
      : limit_(limit), source_(source) {}
  /// No block may be in use: their segments would not be given back.
  ~CachingModel() { release_cached(); }
  CachingModel(const CachingModel&) = delete;
  CachingModel& operator=(const CachingModel&) = delete;

  /// A block from the cache, or from a new segment within the limit.
  /// @returns none  if neither has room, or the source none for the segment: release_cached(), then
  ///          take_segment()
  /// @throws what SegmentSource::make() does; then nothing has changed
  std::optional<Block> take(Bytes size, Stream stream);
  /// A block from a new segment: PyTorch tries this after it has given back its cache, without
  /// another look at what is left of that.
  /// @returns none  as take(); @throws as take()
  std::optional<Block> take_segment(Bytes size, Stream stream);
  /// Gives a block back whose pending uses are over.
  void give_back(Block block) noexcept;
  /// Frees the segments of which nothing is in use, as PyTorch's release_cached_blocks(). Where
  /// they have memory, no stream may use it any more.
  void release_cached() noexcept;

  /// The memory of a block, a multiple of 512 bytes behind its segment's; null without a source,
  /// and for kNoBlock.
  void* data(Block block) const noexcept { return block == kNoBlock ? nullptr : at(block).data; }
  bool has_source() const noexcept { return source_ != nullptr; }
  /// Why the source refused the last segment that was asked for; "" if it did not.
  const std::string& refusal() const noexcept { return refusal_; }

  /// True if take() would have room within the limit.
  bool has_room(Bytes size, Stream stream) const noexcept;
  bool holds_unused_segments() const noexcept;

  Bytes reserved() const noexcept { return reserved_; }  ///< sum over all segments
  /// The size of the segment that a request of `size` bytes makes; 0 for none.
  static Bytes segment_size(Bytes size) noexcept;

  struct Free {
    Bytes size = 0;
    std::uint64_t address = 0;
    Block block = kNoBlock;

    bool operator==(const Free& other) const {
      return size == other.size && address == other.address;
    }
  };
  /// The free blocks by pool and stream, ascending: two models with equal lists answer alike if
  /// their blocks in use are alike.
  using FreeLists = std::array<std::vector<Free>, 2 * kStreams>;
  const FreeLists& free_lists() const noexcept { return free_; }

 private:
  struct Node {
    Bytes size = 0;
    std::uint64_t address = 0;
    Block before = kNoBlock;  ///< its neighbours in the segment
    Block behind = kNoBlock;
    std::size_t list = 0;  ///< the list of its pool and stream
    bool is_free = false;
    std::byte* data = nullptr;
  };

  Node& at(Block block) { return nodes_[static_cast<std::size_t>(block)]; }
  const Node& at(Block block) const { return nodes_[static_cast<std::size_t>(block)]; }
  /// The memory of a new segment; null where there is no source.
  /// @returns none  if the source refuses
  std::optional<std::byte*> make_memory(Bytes segment);
  Block make_node(const Node& node);
  void insert(Block block);
  void remove(Block block);
  Block split(Block block, Bytes size);
  void unite(Block block, Block neighbour);

  Bytes limit_;
  SegmentSource* source_;
  std::string refusal_;
  Bytes reserved_ = 0;
  std::uint64_t next_address_ = 0;
  std::vector<Node> nodes_;
  std::vector<Block> unused_nodes_;
  FreeLists free_;
};

}  // namespace dstune
