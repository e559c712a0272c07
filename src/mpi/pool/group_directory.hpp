// Rank 0's list of the groups that its workers keep.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

namespace dstune {

/// Says which tag stands for which list of ranks, and forgets the least recently used lists. The
/// workers never forget a group by themselves: a worker that did would begin to make a group that
/// the others still have.
class GroupDirectory {
 public:
  struct Entry {
    std::vector<int> ranks;  ///< in the order of the group
    int tag = 0;
  };

  explicit GroupDirectory(std::size_t capacity = 256) : capacity_(capacity) {}

  /// The tag of `ranks`: a known one, or a new one below all before. @throws Error  after 30000
  /// tags
  int tag_of(const std::vector<int>& ranks);

  /// Removes one entry for which there is no more room; the caller must tell its ranks to forget
  /// it. Call it until it returns none.
  std::optional<Entry> evict();

  /// Forgets the group of `ranks`, which can no longer be used: their next tag is a new one.
  void forget(const std::vector<int>& ranks);

 private:
  std::size_t capacity_;
  int next_tag_ = 30000;
  std::list<Entry> entries_;  ///< most recently used first
};

}  // namespace dstune
