#include "core/base/host/memory_bounds.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/host/control_groups.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

class Reader {
 public:
  explicit Reader(const MemorySources& sources) : root_(sources.root), variable_(sources.variable) {
    if (!variable_) variable_ = [](const char* name) -> const char* { return std::getenv(name); };
  }

  std::vector<MemoryBound> read() {
    add_groups();
    add_slurm();
    const std::string sizes = read_kernel_file(root_ + "/proc/self/status");
    add_ulimit("ulimit -v", "Max address space", number_of(sizes, "VmSize"));
    add_ulimit("ulimit -d", "Max data size", number_of(sizes, "VmData"));
    return std::move(bounds_);
  }

 private:
  void add_groups() {
    const auto groups = memory_groups(root_);
    std::optional<Bytes> lowest;
    for (const ControlGroup& group : groups) {
      const auto limit = limit_of(group, root_);
      if (!limit) continue;
      lowest = std::min(lowest.value_or(limit->bytes), limit->bytes);
      bounds_.push_back({concat("control group ", group.path, " (", limit->file, ")"), limit->bytes,
                         used_in(group, root_), id_of(group)});
    }
    if (groups.empty()) return;
    const auto above = hierarchical_limit_of(groups.front(), root_);
    if (!above || (lowest && *lowest <= *above)) return;
    const ControlGroup& last = groups.back();
    bounds_.push_back({concat("a control group above ", last.path), *above, used_in(last, root_),
                       concat("above ", id_of(last))});
  }

  // Equal paths may be different groups in two containers of one host.
  std::string id_of(const ControlGroup& group) const {
    struct stat folder {};
    if (::stat((root_ + group.path).c_str(), &folder) != 0) return group.path;
    return concat("cgroup ", folder.st_dev, ":", folder.st_ino);
  }

  // Slurm counts in MiB; 0 means all that the host has.
  void add_slurm() {
    const char* job = variable_("SLURM_JOB_ID");
    if (job == nullptr) return;
    add_slurm("SLURM_MEM_PER_NODE", nullptr, job);
    add_slurm("SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE", job);
    add_slurm("SLURM_MEM_PER_GPU", "SLURM_GPUS_ON_NODE", job);
  }

  void add_slurm(const char* name, const char* times, const char* job) {
    constexpr Bytes kMost = Bytes{1} << 40U;  // MiB: no host has so much
    const Bytes each = number(name);
    const Bytes count = times == nullptr ? 1 : number(times);
    if (each == 0 || count == 0) return;
    bounds_.push_back({times == nullptr ? concat("Slurm (", name, ")")
                                        : concat("Slurm (", name, " x ", times, ")"),
                       std::min(each * count, kMost) << 20U, 0, concat("Slurm job ", job)});
  }

  // A text that is no number counts as a variable that is not set.
  Bytes number(const char* name) const {
    constexpr Bytes kMost = Bytes{1} << 30U;
    const char* text = variable_(name);
    if (text == nullptr || *text < '0' || *text > '9') return 0;
    return std::min<Bytes>(std::strtoull(text, nullptr, 10), kMost);
  }

  // A line of the file reads:
  // "Max address space         1073741824           unlimited            bytes"
  void add_ulimit(const char* name, std::string_view line_of, std::optional<Bytes> used_kib) {
    for (const auto& line : split(read_kernel_file(root_ + "/proc/self/limits"), '\n')) {
      if (!line.starts_with(line_of)) continue;
      std::istringstream words(line.substr(line_of.size()));
      Bytes limit = 0;
      if (words >> limit) bounds_.push_back({name, limit, used_kib.value_or(0) << 10U, ""});
    }
  }

  std::string root_;
  std::function<const char*(const char*)> variable_;
  std::vector<MemoryBound> bounds_;
};

std::string left_of(const MemoryBound& bound) {
  return concat(bound.name, " has ", format_bytes(bound.free()), " left of ",
                format_bytes(bound.bytes));
}

// With vm.overcommit_memory = 2 the kernel promises no more than it can keep.
std::optional<MemoryBound> commit_bound(const std::string& root) {
  const std::string mode = read_kernel_file(root + "/proc/sys/vm/overcommit_memory");
  if (trim(mode) != "2") return std::nullopt;
  const std::string sizes = read_kernel_file(root + "/proc/meminfo");
  return MemoryBound{"vm.overcommit_memory = 2", number_of(sizes, "CommitLimit").value_or(0) << 10U,
                     number_of(sizes, "Committed_AS").value_or(0) << 10U, "host"};
}

}  // namespace

std::vector<MemoryBound> memory_bounds(const MemorySources& sources) {
  return Reader(sources).read();
}

std::string why_refused(const MemorySources& sources) {
  auto bounds = memory_bounds(sources);
  std::erase_if(bounds, [](const MemoryBound& bound) { return !bound.id.empty(); });
  if (auto commit = commit_bound(sources.root)) bounds.push_back(*std::move(commit));
  const auto least =
      std::min_element(bounds.begin(), bounds.end(),
                       [](const auto& a, const auto& b) { return a.free() < b.free(); });
  return least == bounds.end() ? "it does not say why" : left_of(*least);
}

Bytes most_resident(const MemorySources& sources) {
  const std::string sizes = read_kernel_file(sources.root + "/proc/self/status");
  return number_of(sizes, "VmHWM").value_or(0) << 10U;
}

void offer_to_oom_killer() {
  constexpr int kLikely = 500;  // of 1000: half of all memory counts as its own, too
  constexpr const char* kFile = "/proc/self/oom_score_adj";
  std::istringstream text(read_kernel_file(kFile));
  int score = 0;
  if (!(text >> score) || score >= kLikely) return;
  std::ofstream(kFile) << kLikely;  // raising it needs no right
}

}  // namespace dstune
