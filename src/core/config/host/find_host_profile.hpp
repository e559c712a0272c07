// Where calibrated profiles are kept, and which of them fits a machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/host/host_profile.hpp"

namespace dstune {

/// A run has its profile in its results_dir; all the user's runs share a folder for each machine.
struct ProfilePlaces {
  std::filesystem::path of_run;  ///< results_dir/host_overhead.json; "": nowhere
  std::filesystem::path cache;   ///< ${XDG_CACHE_HOME:-$HOME/.cache}/dstune-mpi/profiles; likewise
};

/// ${XDG_CACHE_HOME:-$HOME/.cache}/dstune-mpi; "": nowhere.
std::filesystem::path user_cache_folder();

ProfilePlaces profile_places(const std::filesystem::path& results_dir);

/// The name of a machine's folder in the cache: "cpu-intel-r-xeon-r-processor".
/// @param device  DeviceInfo::name
std::string machine_key(std::string_view backend, std::string_view device);

struct FoundProfile {
  std::optional<HostOverhead> overhead;
  std::vector<std::string> warnings;  ///< of files that are no profile, or one of something else
};

/// The run's own profile; else the newest of the machine's in the cache that is of as many ranks;
/// else the newest of them. Of those as good the newest whose products are of as many threads, as
/// others say nothing about them. None if there is none. Reads files.
/// @param ranks    of an experiment, on one host
/// @param threads  of each
FoundProfile find_host_profile(const ProfilePlaces& places, std::string_view backend,
                               std::string_view device, int ranks, int threads);

}  // namespace dstune
