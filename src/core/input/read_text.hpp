// Reads the text of a file, pipe or device that a user named, without ever waiting forever.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "core/input/problems.hpp"

namespace dstune {

/// The path that means standard input.
inline constexpr const char* kStandardInput = "-";

/// How long a pipe may keep its reader waiting.
struct Patience {
  std::chrono::milliseconds for_writer{2000};  ///< until somebody opens a named pipe
  std::chrono::milliseconds for_data{60000};   ///< between two pieces of data
};

/// Reads at most `max_bytes` of a file, pipe or device, or of standard input.
///
/// @returns none, with a problem at "file", if it is absent, a directory, unreadable, longer, or a
/// pipe whose writer does not come
std::optional<std::string> read_text_file(const std::filesystem::path& path, std::size_t max_bytes,
                                          Problems& problems, const Patience& patience = {});

}  // namespace dstune
