// The file in the user's cache in which what was learnt of a machine outlives the run.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "core/search/predict/learnt_machine.hpp"

namespace dstune {

/// CACHE/machines/KEY.json, with machine_key()'s KEY. @param cache  user_cache_folder()
/// @returns ""  if `cache` is "": nothing is kept
std::filesystem::path kept_machine_path(const std::filesystem::path& cache,
                                        std::string_view backend, std::string_view device);

/// What is kept there. None if there is no such file; also, with a warning, if it is damaged or no
/// such file of ours.
std::optional<LearntMachine> read_kept_machine(const std::filesystem::path& path);

/// Keeps it instead of what was there. A cache that cannot be written is a warning: the run's
/// results do not hang on it.
void keep_machine(const std::filesystem::path& path, const LearntMachine& learnt);

}  // namespace dstune
