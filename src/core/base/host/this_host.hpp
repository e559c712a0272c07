// Where this process runs, as messages and files name it.
#pragma once

#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// The host's name; "unknown" if the system does not say.
std::string host_name();

/// The namespace of process ids: equal ids mean the same process only within one namespace. "" if
/// the system does not say.
std::string process_space();

/// The cores that this process may use, at least 1.
int usable_cores();

/// The size of the largest cache of the first core; 0 if the system does not say.
Bytes last_level_cache();

}  // namespace dstune
