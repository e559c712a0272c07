#include "core/report/files/leftovers.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

// Open MPI's is .../ompi.HOST.USER/pid.<process id of mpirun>; 0 if `folder` is none.
int launcher_of(const fs::path& folder) {
  constexpr std::string_view kBegin = "pid.";
  const std::string name = folder.filename().string();
  if (!folder.is_absolute() || !name.starts_with(kBegin) ||
      !folder.parent_path().filename().string().starts_with("ompi.")) {
    return 0;
  }
  int pid = 0;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kBegin.size(), end, pid);
  return parsed.ec == std::errc() && parsed.ptr == end && pid > 0 ? pid : 0;
}

bool is_plain_folder_of_this_user(const fs::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
         found.st_uid == ::geteuid();
}

// A run that is seen to be gone ran in this process space, so its launcher's id can be looked up.
void remove_launcher_folder(const RunProcess& run, const std::string& own) {
  const fs::path folder = run.launcher_folder;
  const int launcher = launcher_of(folder);
  if (launcher == 0 || run.launcher_folder == own || look_for(run) != Sight::gone) return;
  if (::kill(launcher, 0) == 0 || errno != ESRCH || !is_plain_folder_of_this_user(folder)) return;
  std::error_code fault;
  fs::remove_all(folder, fault);
  if (!fault) log_line(concat("removed ", folder.string(), ", left by a run that was killed"));
}

}  // namespace

void remove_leftovers(const std::string& results_dir, const std::string& exps_dir, const Runs& runs,
                      const std::string& own_launcher_folder) {
  for (const auto& path : find_unfinished_files(results_dir, exps_dir, runs)) {
    std::error_code fault;
    fs::remove(path, fault);
    if (!fault) log_line(concat("removed ", path.string(), ", left by a run that was killed"));
  }
  for (const auto& process : runs.processes) remove_launcher_folder(process, own_launcher_folder);
}

}  // namespace dstune
