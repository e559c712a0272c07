#include "core/device/memory/caching_model.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace dstune::caching_model_test {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kPlenty = Bytes{1} << 50U;

/// The same rules, written down without any care for speed: segments are lists of pieces, and every
/// question is a walk over all of them.
class NaiveModel {
 public:
  explicit NaiveModel(Bytes limit) : limit_(limit) {}

  /// @returns an id, or none if it does not fit even after the cache was given back
  std::optional<int> allocate(Bytes size, Stream stream) {
    const Bytes rounded = std::max<Bytes>(512, (size + 511) & ~Bytes{511});
    if (const auto id = from_cache(rounded, stream)) return id;
    const Bytes segment = segment_of(rounded);
    if (reserved() + segment > limit_) {
      std::erase_if(segments_,
                    [](const Segment& s) { return s.pieces.size() == 1 && s.pieces[0].id == 0; });
    }
    if (reserved() + segment > limit_) return std::nullopt;
    segments_.push_back({rounded <= kMiB, stream, {{segment, 0}}});
    return use(segments_.back(), 0, rounded);
  }

  void free(int id) {
    for (Segment& segment : segments_) {
      for (Piece& piece : segment.pieces) {
        if (piece.id == id) piece.id = 0;
      }
      for (std::size_t i = 0; i + 1 < segment.pieces.size();) {
        if (segment.pieces[i].id == 0 && segment.pieces[i + 1].id == 0) {
          segment.pieces[i].size += segment.pieces[i + 1].size;
          segment.pieces.erase(segment.pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        } else {
          ++i;
        }
      }
    }
  }

  Bytes reserved() const {
    Bytes sum = 0;
    for (const Segment& segment : segments_) {
      for (const Piece& piece : segment.pieces) sum += piece.size;
    }
    return sum;
  }

 private:
  struct Piece {
    Bytes size = 0;
    int id = 0;  ///< 0: free
  };
  struct Segment {
    bool small = false;
    Stream stream = Stream::compute;
    std::vector<Piece> pieces;
  };

  static Bytes segment_of(Bytes rounded) {
    if (rounded <= kMiB) return 2 * kMiB;
    if (rounded < 10 * kMiB) return 20 * kMiB;
    return (rounded + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  }

  // The first of the smallest: segments are in the order in which they were made.
  std::optional<int> from_cache(Bytes rounded, Stream stream) {
    Segment* best = nullptr;
    std::size_t place = 0;
    for (Segment& segment : segments_) {
      if (segment.small != (rounded <= kMiB) || segment.stream != stream) continue;
      for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
        const Piece& piece = segment.pieces[i];
        if (piece.id != 0 || piece.size < rounded) continue;
        if (best != nullptr && best->pieces[place].size <= piece.size) continue;
        best = &segment;
        place = i;
      }
    }
    if (best == nullptr) return std::nullopt;
    return use(*best, place, rounded);
  }

  int use(Segment& segment, std::size_t place, Bytes rounded) {
    const Bytes rest = segment.pieces[place].size - rounded;
    segment.pieces[place].id = ++last_id_;
    if (segment.small ? rest >= 512 : rest > kMiB) {
      segment.pieces[place].size = rounded;
      segment.pieces.insert(segment.pieces.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                            {rest, 0});
    }
    return last_id_;
  }

  Bytes limit_;
  std::vector<Segment> segments_;
  int last_id_ = 0;
};

/// As Device asks: from the cache, then from a new segment after the cache was given back.
std::optional<CachingModel::Block> allocate(CachingModel& model, Bytes size,
                                            Stream stream = Stream::compute) {
  if (const auto block = model.take(size, stream)) return block;
  model.release_cached();
  return model.take_segment(size, stream);
}

/// Sizes around every border of the rules.
Bytes random_size(std::mt19937_64& random) {
  constexpr Bytes kBorders[] = {512,      4096,      kMiB / 2,  kMiB,     2 * kMiB,
                                9 * kMiB, 10 * kMiB, 20 * kMiB, 37 * kMiB};
  const Bytes border = kBorders[random() % std::size(kBorders)];
  switch (random() % 4) {
    case 0:
      return border;
    case 1:
      return border + random() % 3;
    case 2:
      return border - random() % 512;
    default:
      return 1 + random() % (border + border / 4);
  }
}

void compare(std::uint64_t seed, Bytes limit, bool over_streams) {
  std::mt19937_64 random(seed);
  CachingModel model(limit);
  NaiveModel naive(limit);
  std::vector<std::pair<CachingModel::Block, int>> live;
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    if (!live.empty() && random() % 5 < 2) {
      const std::size_t chosen = random() % live.size();
      model.give_back(live[chosen].first);
      naive.free(live[chosen].second);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(chosen));
    } else {
      const Bytes size = random_size(random);
      const auto stream = static_cast<Stream>(over_streams ? random() % kStreams : 0);
      const auto block = allocate(model, size, stream);
      const auto id = naive.allocate(size, stream);
      ASSERT_EQ(block.has_value(), id.has_value()) << "seed " << seed << ", step " << i;
      if (block) live.emplace_back(*block, *id);
      if (!block) ++refused;
    }
    ASSERT_EQ(model.reserved(), naive.reserved()) << "seed " << seed << ", step " << i;
    ASSERT_LE(model.reserved(), limit);
  }
  for (const auto& [block, id] : live) model.give_back(block);
  model.release_cached();
  EXPECT_EQ(model.reserved(), 0U) << "seed " << seed;
  EXPECT_EQ(limit<kPlenty, refused> 0) << "seed " << seed;
}

TEST(CachingModel, ReservesWhatANaiveSimulationDoes) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    compare(seed, kPlenty, false);
    compare(seed, kPlenty, true);
  }
}

TEST(CachingModel, IsFullWhereANaiveSimulationIs) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    compare(seed, 100 * kMiB, false);
    compare(seed, 250 * kMiB, true);
  }
}

// At the borders between the constants of CUDACachingAllocator.cpp.
TEST(CachingModel, MakesTheSegmentsOfPyTorchsConstants) {
  struct Case {
    Bytes size;
    int count;
    Bytes reserved;
  };
  for (const Case& one : {Case{512, 1, 2 * kMiB}, Case{kMiB, 2, 2 * kMiB}, Case{kMiB, 3, 4 * kMiB},
                          Case{kMiB + 512, 1, 20 * kMiB}, Case{10 * kMiB - 512, 2, 20 * kMiB},
                          Case{10 * kMiB - 512, 3, 40 * kMiB}, Case{10 * kMiB, 1, 10 * kMiB},
                          Case{10 * kMiB + 512, 3, 36 * kMiB}}) {
    CachingModel model(kPlenty);
    for (int i = 0; i < one.count; ++i) model.take(one.size, Stream::compute);

    EXPECT_EQ(model.reserved(), one.reserved) << one.count << " of " << one.size;
  }
}

TEST(CachingModel, ALargeRestIsKeptUpToOneMebibyte) {
  for (const bool is_split : {false, true}) {
    CachingModel model(kPlenty);
    const Bytes rest = kMiB + (is_split ? 512 : 0);
    const auto first = model.take(20 * kMiB, Stream::compute);
    model.give_back(*first);

    model.take(20 * kMiB - rest, Stream::compute);

    model.take(kMiB + 512, Stream::compute);  // the smallest of the large pool
    EXPECT_EQ(model.reserved(), is_split ? 20 * kMiB : 40 * kMiB);
  }
}

TEST(CachingModel, NothingTakesNothing) {
  CachingModel model(0);

  const auto block = model.take(0, Stream::compute);

  ASSERT_TRUE(block);
  model.give_back(*block);
  EXPECT_EQ(model.reserved(), 0U);
}

TEST(CachingModel, AnotherStreamsBlocksAreNotReused) {
  CachingModel model(kPlenty);
  model.give_back(*model.take(30 * kMiB, Stream::gather));

  model.take(30 * kMiB, Stream::compute);

  EXPECT_EQ(model.reserved(), 60 * kMiB);
}

TEST(CachingModel, WhatIsCachedElsewhereIsGivenBackBeforeMemoryIsShort) {
  CachingModel model(59 * kMiB);
  model.give_back(*model.take(30 * kMiB, Stream::gather));

  EXPECT_FALSE(model.take(30 * kMiB, Stream::compute));
  EXPECT_TRUE(model.holds_unused_segments());
  EXPECT_TRUE(allocate(model, 30 * kMiB));
  EXPECT_EQ(model.reserved(), 30 * kMiB);
}

TEST(CachingModel, ASplitSegmentIsNotGivenBack) {
  CachingModel model(59 * kMiB);
  const auto whole = model.take(30 * kMiB, Stream::gather);
  model.give_back(*whole);
  const auto part = model.take(2 * kMiB, Stream::gather);

  EXPECT_FALSE(model.holds_unused_segments());
  EXPECT_FALSE(allocate(model, 30 * kMiB));
  model.give_back(*part);
  EXPECT_TRUE(allocate(model, 30 * kMiB));
}

/// Segments at addresses that nobody reads, in another order than they are made; they do not
/// adjoin.
class FakeSegments final : public SegmentSource {
 public:
  Segment make(Bytes size) override {
    if (refuses) return {nullptr, "refused"};
    next_ -= size + kMiB;
    live[next_] = size;
    return {reinterpret_cast<void*>(next_), ""};  // NOLINT(performance-no-int-to-ptr): not read
  }
  void give_back(void* data, Bytes size) noexcept override {
    const auto found = live.find(reinterpret_cast<std::uintptr_t>(data));
    ASSERT_NE(found, live.end()) << "no segment begins there";
    ASSERT_EQ(found->second, size);
    live.erase(found);
  }

  Bytes total() const {
    Bytes sum = 0;
    for (const auto& [begin, size] : live) sum += size;
    return sum;
  }
  /// True if a segment holds all of [begin, end).
  bool hold(std::uintptr_t begin, std::uintptr_t end) const {
    const auto next = live.upper_bound(begin);
    if (next == live.begin()) return false;
    const auto& [first, size] = *std::prev(next);
    return end <= first + size;
  }

  std::map<std::uintptr_t, Bytes> live;
  bool refuses = false;

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 46U;
};

/// Blocks in use with the sizes that were asked for, of which no two may share a byte.
class LiveBlocks {
 public:
  LiveBlocks(CachingModel& model, const FakeSegments& segments)
      : model_(model), segments_(segments) {}

  void add(CachingModel::Block block, Bytes size) {
    const auto begin = reinterpret_cast<std::uintptr_t>(model_.data(block));
    const auto end = begin + size;
    ASSERT_EQ(begin % 512, 0U);
    ASSERT_TRUE(segments_.hold(begin, end)) << "outside of all segments";
    const auto next = blocks_.lower_bound(begin);
    if (next != blocks_.end()) {
      ASSERT_LE(end, next->first);
    }
    if (next != blocks_.begin()) {
      const auto& [before, other] = *std::prev(next);
      ASSERT_LE(before + other.second, begin);
    }
    blocks_[begin] = {block, size};
  }
  void give_back_one(std::uint64_t random) {
    const auto chosen =
        std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(random % blocks_.size()));
    model_.give_back(chosen->second.first);
    blocks_.erase(chosen);
  }
  void expect_within_segments() const {
    for (const auto& [begin, block] : blocks_) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(model_.data(block.first)), begin) << "has moved";
      ASSERT_TRUE(segments_.hold(begin, begin + block.second)) << "its segment is gone";
    }
  }
  bool empty() const { return blocks_.empty(); }

 private:
  CachingModel& model_;
  const FakeSegments& segments_;
  std::map<std::uintptr_t, std::pair<CachingModel::Block, Bytes>> blocks_;
};

TEST(CachingModel, BlocksInUseLieInSegmentsAndShareNoByte) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    FakeSegments segments;
    CachingModel model(250 * kMiB, &segments);
    LiveBlocks live(model, segments);
    for (int i = 0; i < 120; ++i) {
      if (!live.empty() && random() % 5 < 2) {
        live.give_back_one(random());
      } else {
        segments.refuses = random() % 8 == 0;
        const Bytes size = random_size(random);
        const auto block = allocate(model, size, static_cast<Stream>(random() % kStreams));
        if (block) live.add(*block, size);
        if (!block) ++refused;
      }
      ASSERT_EQ(model.reserved(), segments.total());
      ASSERT_FALSE(HasFatalFailure());
    }
    live.expect_within_segments();
    while (!live.empty()) live.give_back_one(0);
    model.release_cached();
    ASSERT_TRUE(segments.live.empty());
  }
  EXPECT_GT(refused, 1000);
}

TEST(CachingModel, GivesSegmentsBackAtItsEnd) {
  FakeSegments segments;
  {
    CachingModel model(kPlenty, &segments);
    model.give_back(*model.take(30 * kMiB, Stream::compute));
    EXPECT_EQ(segments.total(), 30 * kMiB);
  }
  EXPECT_TRUE(segments.live.empty());
}

TEST(CachingModel, ASegmentThatIsRefusedChangesNothing) {
  FakeSegments segments;
  CachingModel model(60 * kMiB, &segments);
  const auto block = model.take(30 * kMiB, Stream::compute);
  segments.refuses = true;

  EXPECT_FALSE(model.take(20 * kMiB, Stream::compute));

  EXPECT_EQ(model.refusal(), "refused");
  EXPECT_EQ(model.reserved(), 30 * kMiB);
  EXPECT_FALSE(model.take(40 * kMiB, Stream::compute));
  EXPECT_EQ(model.refusal(), "") << "it is the limit that has no room";
  segments.refuses = false;
  model.give_back(*model.take(20 * kMiB, Stream::compute));
  model.give_back(*block);
}

TEST(CachingModel, HasNoMemoryWithoutASource) {
  CachingModel model(kPlenty);

  const auto block = model.take(30 * kMiB, Stream::compute);

  EXPECT_FALSE(model.has_source());
  EXPECT_EQ(model.data(*block), nullptr);
  EXPECT_EQ(model.data(CachingModel::kNoBlock), nullptr);
}

TEST(CachingModel, IsFullOneByteBelowItsSegments) {
  for (const Bytes limit : {22 * kMiB - 1, 22 * kMiB}) {
    CachingModel model(limit);
    ASSERT_TRUE(model.take(kMiB + 1, Stream::compute));

    EXPECT_EQ(model.has_room(1, Stream::compute), limit == 22 * kMiB);
    EXPECT_EQ(allocate(model, 1).has_value(), limit == 22 * kMiB);
  }
}

}  // namespace
}  // namespace dstune::caching_model_test
