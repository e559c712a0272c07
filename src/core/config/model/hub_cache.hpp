// The cache in which huggingface_hub keeps what was downloaded from its hub.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dstune {

/// The folder that huggingface_hub itself would use: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE,
/// HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Empty if none of
/// these variables, nor HOME, is set.
std::filesystem::path hub_cache();

/// "ORG/NAME", which is what repositories of the hub are called; not a path of more or fewer parts.
bool is_hub_name(std::string_view name);

/// The config.json of the revision "main" of the repository `name`, in any case; empty if `cache`
/// has none. Nothing is downloaded.
std::filesystem::path find_in_hub_cache(const std::filesystem::path& cache, std::string_view name);

/// The repository whose snapshot a path such as find_in_hub_cache()'s is in: "ORG/NAME"; empty if
/// it is in none.
std::string hub_name_of(const std::filesystem::path& config_in_cache);

}  // namespace dstune
