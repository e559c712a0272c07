#include "mpi/base/launcher.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/files/file.hpp"
#include "core/base/host/control_groups.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

// In this order: a launcher's own ranks hand on what the job's launcher has set for them.
constexpr std::array<const char*, 6> kRankVariables = {
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",    // Open MPI, srun --mpi=pmix
    "PMI_RANK",     // MPICH's Hydra and what is made of it, srun --mpi=pmi2
    "PALS_RANKID",  // Cray PALS
    "FLUX_TASK_RANK",
    "SLURM_PROCID"};

// As /proc has them, cut off after 15 letters.
constexpr std::array<std::string_view, 6> kCommands = {
    "mpirun", "mpiexec", "orterun", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"};
constexpr std::array<std::string_view, 3> kDaemons = {"orted", "prted", "hydra_pmi_proxy"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, int pid) {
  const std::string comm = read_proc(pid, "comm");
  return std::find(names.begin(), names.end(), trim(comm)) != names.end();
}

/// The process id of the parent of `pid`; 0 if there is no process `pid`.
int parent_of(int pid) {
  const std::string stat = read_proc(pid, "stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string state;
  int parent = 0;
  fields >> state >> parent;
  return parent;
}

std::string reason(int error_code) { return std::generic_category().message(error_code); }

// Writes zero bytes: /dev/full refuses even these for want of space.
std::string device_fault(const std::string& path) {
  const FileHandle file(::open(path.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  if (!file || ::isatty(file.get()) == 1) return "";
  return ::write(file.get(), "", 0) < 0 ? reason(errno) : "";
}

std::string disk_fault(const std::string& path, Bytes size) {
  struct statvfs disk {};
  if (::statvfs(path.c_str(), &disk) != 0) return "";
  const Bytes blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return blocks * disk.f_frsize < size ? reason(ENOSPC) : "";
}

}  // namespace

std::string read_proc(int pid, const char* name) {
  return read_kernel_file(concat("/proc/", pid, "/", name));
}

std::optional<int> rank_of_launcher() {
  for (const char* variable : kRankVariables) {
    if (const char* text = std::getenv(variable))
      return static_cast<int>(std::strtol(text, nullptr, 10));
  }
  return std::nullopt;
}

std::optional<int> ranks_of_launcher() {
  // Not Slurm's: they are there in a job without a launcher, too.
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* text = std::getenv(variable))
      return static_cast<int>(std::strtol(text, nullptr, 10));
  }
  return std::nullopt;
}

bool is_rank(int pid) {
  const std::string environment = read_proc(pid, "environ");
  // Not Slurm's: what mpirun itself starts in a job, such as srun, has that too.
  return environment.find("OMPI_COMM_WORLD_RANK=") != std::string::npos ||
         environment.find("PMI_RANK=") != std::string::npos;
}

std::size_t ranks_of_this_host() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* text = std::getenv(variable)) return std::strtoul(text, nullptr, 10);
  }
  return 0;
}

int find_launcher() {
  constexpr int kMostScripts = 3;
  int pid = getppid();
  for (int i = 0; i <= kMostScripts && pid > 1; ++i, pid = parent_of(pid)) {
    if (is_one_of(kCommands, pid) || is_one_of(kDaemons, pid)) return pid;
  }
  return 0;
}

int find_mpirun() {
  const int launcher = find_launcher();
  if (launcher == 0 || is_one_of(kCommands, launcher)) return launcher;
  // Hydra has a daemon on every host, which on mpiexec's own is its child.
  const int parent = parent_of(launcher);
  return is_one_of(kCommands, parent) ? parent : 0;
}

std::string why_launcher_cannot_print(Bytes size) {
  const int launcher = find_mpirun();
  if (launcher == 0) return "";
  const std::string path = concat("/proc/", launcher, "/fd/1");
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return "";
  if (S_ISCHR(found.st_mode)) return device_fault(path);
  return S_ISREG(found.st_mode) ? disk_fault(path, size) : "";
}

std::string launcher_folder() {
  const char* folder =
      std::getenv("OMPI_MCA_orte_jobfam_session_dir");  // NOLINT(concurrency-mt-unsafe)
  return folder == nullptr ? "" : folder;
}

}  // namespace dstune
