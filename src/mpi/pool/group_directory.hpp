// Rank 0's list of the groups that its workers keep.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

namespace dstune {

/// Which tag stands for which list of ranks. Least recently used lists are forgotten. The workers
/// never forget by themselves: one that did would make a group that the others still have.
class GroupDirectory {
 public:
  struct Entry {
    std::vector<int> ranks;  ///< in group order
    int tag = 0;
  };

  explicit GroupDirectory(std::size_t capacity = 256) : capacity_(capacity) {}

  /// The tag of `ranks`: a known one, or the next lower than all before. @throws Error after 30000
  int tag_of(const std::vector<int>& ranks);

  /// An entry that no longer has its place, if any: tell its ranks. Call until there is none.
  std::optional<Entry> evict();

  /// `ranks` can no longer be used as a group: their next tag is a new one.
  void forget(const std::vector<int>& ranks);

 private:
  std::size_t capacity_;
  int next_tag_ = 30000;
  std::list<Entry> entries_;  ///< most recently used first
};

}  // namespace dstune
