#include "mpi/pool/group_directory.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace dstune {

int GroupDirectory::tag_of(const std::vector<int>& ranks) {
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.ranks == ranks; });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
  } else {
    if (next_tag_ < 1) throw Error("no more MPI groups: 30000 were made; rerun with --resume");
    entries_.push_front({ranks, next_tag_--});
  }
  return entries_.front().tag;
}

std::optional<GroupDirectory::Entry> GroupDirectory::evict() {
  if (entries_.size() <= capacity_) return std::nullopt;
  Entry entry = std::move(entries_.back());
  entries_.pop_back();
  return entry;
}

void GroupDirectory::forget(const std::vector<int>& ranks) {
  entries_.remove_if([&](const Entry& entry) { return entry.ranks == ranks; });
}

}  // namespace dstune
