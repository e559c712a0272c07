// How often a data set has which length: a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/experiment/length_settings.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// Where a file has more different lengths than this, neighbours are put together.
constexpr std::size_t kMostLengths = 1024;

/// Reads lines of LENGTH or LENGTH,COUNT (a first line of titles is skipped), or JSON: {"LENGTH":
/// COUNT}, [LENGTH, ...] or [[LENGTH, COUNT], ...]. Ascending; empty with problems. More than
/// kMostLengths different ones are rounded up to multiples of the least step that leaves no more.
std::vector<LengthCount> read_length_file(const std::filesystem::path& path, Problems& problems);

/// `counts` ascending, each length once, as read_length_file() gives them.
std::vector<LengthCount> gathered(std::vector<LengthCount> counts);

}  // namespace dstune
