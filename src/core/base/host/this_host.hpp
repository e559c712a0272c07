// Where this process runs, as messages and files name it.
#pragma once

#include <string>

namespace dstune {

/// The host's name; "unknown" if the system does not say.
std::string host_name();

/// The namespace of process ids: equal ids mean the same process only within one namespace. "" if
/// the system does not say.
std::string process_space();

/// The cores that this process may use, at least 1.
int usable_cores();

}  // namespace dstune
