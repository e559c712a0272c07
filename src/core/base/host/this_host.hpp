// Where this process runs, as messages and files name it.
#pragma once

#include <string>

namespace dstune {

/// "unknown" if the system does not say.
std::string host_name();

/// The namespace of process ids: numbers of processes mean the same only within one. "" if the
/// system does not say.
std::string process_space();

}  // namespace dstune
