// Whether there is room for results.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.hpp"

namespace dstune {

struct FreeSpace {
  bool known = false;  ///< false: the file system does not say
  Bytes bytes = 0;     ///< for this user; quotas are not seen
  bool files_known = false;
  std::uint64_t files = 0;  ///< that can still be made
};

/// The space of the file system on which `directory` is or would be made.
FreeSpace look_for_space(const std::string& directory);

/// Why a run had better not begin with this much, or "".
std::string find_shortage(const FreeSpace& space);

}  // namespace dstune
