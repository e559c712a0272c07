// Which groups' communicators a process keeps.
#pragma once

#include <cstddef>
#include <list>
#include <vector>

#include "core/base/units.hpp"

namespace dstune::cuda {

/// The most recently used ones, bounded in number and in device memory.
class RecentGroups {
 public:
  using Members = std::vector<int>;

  /// @param most     groups, at least one
  /// @param reserve  of device memory for all of them
  RecentGroups(std::size_t most, Bytes reserve) : most_(most), reserve_(reserve) {}

  /// The group is used now; it may be new.
  void use(const Members& members);
  /// Adds what the group's communicators turned out to need more.
  void add_bytes(const Members& members, Bytes bytes);
  void drop(const Members& members);

  /// The groups that must go, least recently used first, before a new one is made, which is
  /// expected to need as much as the largest so far.
  std::vector<Members> to_drop_for_one_more() const;
  /// The groups that must go now that all is known; never the one that was used last.
  std::vector<Members> to_drop() const;

  Bytes bytes() const;  ///< of all

 private:
  struct Group {
    Members members;
    Bytes bytes = 0;
  };
  using Groups = std::list<Group>;

  Groups::iterator find(const Members& members);
  std::vector<Members> beyond(std::size_t most, Bytes reserve) const;

  std::size_t most_;
  Bytes reserve_;
  Bytes largest_ = 0;  ///< ever
  Groups groups_;      ///< the least recently used first
};

}  // namespace dstune::cuda
