#include "core/config/host/find_host_profile.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/device/backend_list.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

namespace {

/// The profiles of a folder by their names, so that a run repeats itself.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::error_code fault;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(folder, fault), end; !fault && entry != end;
       entry.increment(fault)) {
    if (entry->path().extension() == ".json") files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// @param name  of a backend, or of the library that stands for it
bool is_on_host(std::string_view name) {
  return std::ranges::any_of(kBackends, [&](const BackendTraits& backend) {
    return backend.computes_on_host && (backend.name == name || backend.communication == name);
  });
}

// What gloo's host costs is nothing to a GPU, and the other way round.
bool is_of(const MeasuredOn& on, std::string_view backend) {
  return on.backend.empty() || is_on_host(on.backend) == is_on_host(backend);
}

class Search {
 public:
  explicit Search(std::string_view backend) : backend_(backend) {}

  std::optional<HostProfile> read(const std::filesystem::path& path) {
    std::error_code ignored;
    if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
    Problems problems(path.string());
    auto profile = read_host_profile(path, problems);
    try {
      problems.throw_if_any();
    } catch (const ConfigError& fault) {
      const Problem& first = fault.problems().front();
      const std::size_t more = fault.problems().size() - 1;
      warnings_.push_back(concat("host overhead: ", path.string(), " is ignored: ", first.where,
                                 " ", first.what,
                                 more == 0 ? "" : concat("; and ", more, " more")));
      return std::nullopt;
    }
    if (profile && is_of(profile->measured_on, backend_)) return profile;
    warnings_.push_back(concat("host overhead: ", path.string(), " is ignored: it was measured ",
                               "with ", profile->measured_on.backend, ", not with ", backend_));
    return std::nullopt;
  }

  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  std::string backend_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::filesystem::path user_cache_folder() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody sets them
  const char* const base = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  const bool has_base = base != nullptr && *base != '\0';
  if (!has_base && (home == nullptr || *home == '\0')) return {};
  return (has_base ? std::filesystem::path(base) : std::filesystem::path(home) / ".cache") /
         "dstune-mpi";
}

ProfilePlaces profile_places(const std::filesystem::path& results_dir) {
  const std::filesystem::path cache = user_cache_folder();
  return {results_dir / "host_overhead.json", cache.empty() ? cache : cache / "profiles"};
}

std::string machine_key(std::string_view backend, std::string_view device) {
  std::string name;
  for (const char letter : lower(device)) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
    if (is_plain || name.empty() || name.back() != '-') name += is_plain ? letter : '-';
  }
  return concat(backend, "-", name);
}

FoundProfile find_host_profile(const ProfilePlaces& places, std::string_view backend,
                               std::string_view device, int ranks, int threads) {
  Search search(backend);
  std::optional<HostProfile> best = search.read(places.of_run);
  if (!best && !places.cache.empty()) {
    const auto worth = [&](const HostProfile& profile) {
      const bool has_threads =
          std::ranges::any_of(profile.overhead.products,
                              [&](const ProductRate& rate) { return rate.threads == threads; });
      return std::tuple(profile.measured_on.ranks == ranks, has_threads, profile.measured_on.date);
    };
    for (const auto& path : files_in(places.cache / machine_key(backend, device))) {
      auto profile = search.read(path);
      if (profile && (!best || worth(*best) <= worth(*profile))) best = std::move(profile);
    }
  }
  FoundProfile found;
  if (best) found.overhead = std::move(best->overhead);
  found.warnings = search.take_warnings();
  return found;
}

}  // namespace dstune
