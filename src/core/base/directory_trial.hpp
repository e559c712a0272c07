// Whether files could be written somewhere, found out without leaving anything behind.
#pragma once

#include <string>

namespace dstune {

/// Why no file could be written to the directory `path`, which need not exist yet; "" if one could.
/// Makes the missing parts of the path inside a folder of its own, where others that look at the
/// same moment are not in the way, and removes them again.
std::string why_not_writable(const std::string& path);

}  // namespace dstune
