// What failed of an operation on a file, as a value: a drive that fails is no fault of the program.
#pragma once

#include <string>
#include <variant>

#include "core/base/units.hpp"

namespace dstune::host {

struct FileError {
  std::string operation;  ///< "write", "read", "open", "io_setup", "mlock", ...
  std::string file;       ///< its path, or the directory of a file without a name; "": none
  Bytes offset = 0;       ///< in the file, of the request that failed
  Bytes size = 0;         ///< of that request; 0: the operation has none
  Bytes moved = 0;        ///< the bytes of it that were read or written all the same
  int code = 0;           ///< errno's value; 0: it ended well, but short
  std::string remark;     ///< what else helps to understand it, or ""

  bool operator==(const FileError&) const = default;
};

/// One line: "write of 1.00 MiB at offset 3145728 in /ssd: No space left on device (ENOSPC)",
/// "read of 8.00 MiB at offset 0 in /ssd: only 4096 bytes were moved".
std::string to_text(const FileError& error);

/// The name of errno's value, "ENOSPC"; "errno 117" for one that files seldom have.
std::string error_name(int code);

/// What was made, or why it could not be.
template <class T>
using OrFileError = std::variant<T, FileError>;

}  // namespace dstune::host
