#include "core/search/run/kept_machine.hpp"

#include <exception>
#include <string>
#include <system_error>

#include "core/base/files/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/config/host/find_host_profile.hpp"

namespace dstune {
namespace {

constexpr Bytes kMostBytes = 1 << 16;

}  // namespace

std::filesystem::path kept_machine_path(const std::filesystem::path& cache,
                                        std::string_view backend, std::string_view device) {
  if (cache.empty()) return {};
  return cache / "machines" / concat(machine_key(backend, device), ".json");
}

std::optional<LearntMachine> read_kept_machine(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || !std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  try {
    return learnt_machine_from_json(
        parse_json(read_text_file(path.string(), kMostBytes)).as_object());
  } catch (const std::exception&) {
    log_warning(concat(path.string(), " is ignored: it does not hold what a search learnt about a ",
                       "machine; the next search that ends well rewrites it"));
    return std::nullopt;
  }
}

void keep_machine(const std::filesystem::path& path, const LearntMachine& learnt) {
  if (path.empty()) return;
  try {
    ensure_directory(path.parent_path().string());
    write_file_atomically(path.string(), to_json_text(to_json(learnt), 2) + "\n",
                          Durability::process_crash);
  } catch (const std::exception& fault) {
    log_warning(concat("what was learnt about the machine could not be saved: ", fault.what()));
  }
}

}  // namespace dstune
