// dstune.host_overhead: a preset's name, or the path of a profile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/host_overhead.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// A preset (host_overhead_preset), or a profile (read_host_profile), relative to each of `folders`
/// in turn. Nothing for "default", which is the machine's to say (core/search/feasibility), and,
/// with problems at `where` or in the file, for what is none of these.
std::optional<HostOverhead> read_host_overhead(const std::string& name,
                                               const std::vector<std::filesystem::path>& folders,
                                               std::string_view where, Problems& problems);

}  // namespace dstune
