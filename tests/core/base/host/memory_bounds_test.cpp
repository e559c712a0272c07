#include "core/base/host/memory_bounds.hpp"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/kernel_files.hpp"

namespace dstune::memory_bounds_test {
namespace {

using namespace dstune::literals;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::KernelFiles;

/// A made-up machine.
struct Machine {
  KernelFiles files;
  std::map<std::string, std::string> variables;

  MemorySources sources() const {
    return {files.root(), [this](const char* name) -> const char* {
              const auto found = variables.find(name);
              return found == variables.end() ? nullptr : found->second.c_str();
            }};
  }
  std::vector<MemoryBound> bounds() const { return memory_bounds(sources()); }
};

TEST(MemoryBounds, AreNoneWhereNothingHoldsBack) {
  Machine machine;
  machine.files.unified("/user.slice");
  machine.files.group("/sys/fs/cgroup/user.slice", {{"memory.max", "max\n"}});
  machine.files.limits("unlimited", "unlimited");

  EXPECT_THAT(machine.bounds(), IsEmpty());
}

TEST(MemoryBounds, AreThoseOfEveryGroupOnThePath) {
  Machine machine;
  machine.files.unified("/job/task");
  machine.files.group("/sys/fs/cgroup/job/task", {{"memory.max", "max\n"}});
  machine.files.group("/sys/fs/cgroup/job", {{"memory.max", "3221225472\n"},
                                             {"memory.current", "1073741824\n"},
                                             {"memory.stat", "inactive_file 536870912\n"}});

  const auto bounds = machine.bounds();

  ASSERT_THAT(bounds, SizeIs(1));
  EXPECT_EQ(bounds[0].name, "control group /sys/fs/cgroup/job (memory.max)");
  EXPECT_EQ(bounds[0].bytes, 3_GiB);
  EXPECT_EQ(bounds[0].used, 512_MiB);
  EXPECT_EQ(bounds[0].free(), 2560_MiB);
}

TEST(MemoryBounds, OfAGroupHaveOneIdForAllInIt) {
  Machine machine;
  machine.files.unified("/job/task_1");
  machine.files.group("/sys/fs/cgroup/job/task_1", {{"memory.max", "100\n"}});
  machine.files.group("/sys/fs/cgroup/job/task_2", {{"memory.max", "100\n"}});
  machine.files.group("/sys/fs/cgroup/job", {{"memory.max", "200\n"}});
  const auto first = machine.bounds();
  machine.files.unified("/job/task_2");
  const auto second = machine.bounds();

  ASSERT_THAT(first, SizeIs(2));
  ASSERT_THAT(second, SizeIs(2));
  EXPECT_NE(first[0].id, second[0].id);
  EXPECT_EQ(first[1].id, second[1].id);
}

TEST(MemoryBounds, OfVersion1AreAlsoThoseThatCannotBeSeen) {
  Machine machine;
  machine.files.first_version("/");
  machine.files.group("/sys/fs/cgroup/memory",
                      {{"memory.limit_in_bytes", "1073741824\n"},
                       {"memory.stat", "hierarchical_memory_limit 419430400\n"}});

  const auto bounds = machine.bounds();

  ASSERT_THAT(bounds, SizeIs(2));
  EXPECT_EQ(bounds[1].name, "a control group above /sys/fs/cgroup/memory");
  EXPECT_EQ(bounds[1].bytes, 400_MiB);
}

TEST(MemoryBounds, AreWhatSlurmGaveTheJobOnAHost) {
  Machine machine;
  machine.variables = {{"SLURM_MEM_PER_NODE", "3072"}};
  EXPECT_THAT(machine.bounds(), IsEmpty()) << "no job";

  machine.variables["SLURM_JOB_ID"] = "7";
  ASSERT_THAT(machine.bounds(), SizeIs(1));
  EXPECT_EQ(machine.bounds()[0],
            (MemoryBound{"Slurm (SLURM_MEM_PER_NODE)", 3_GiB, 0, "Slurm job 7"}));

  machine.variables = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_CPU", "512"}, {"SLURM_CPUS_ON_NODE", "4"}};
  ASSERT_THAT(machine.bounds(), SizeIs(1));
  EXPECT_EQ(machine.bounds()[0].bytes, 2_GiB);
  EXPECT_EQ(machine.bounds()[0].name, "Slurm (SLURM_MEM_PER_CPU x SLURM_CPUS_ON_NODE)");
}

TEST(MemoryBounds, ThatSlurmLeavesToTheHostOrGarblesAreNone) {
  Machine machine;
  for (const char* text : {"0", "", "all", "-1"}) {
    machine.variables = {{"SLURM_JOB_ID", "7"}, {"SLURM_MEM_PER_NODE", text}};
    EXPECT_THAT(machine.bounds(), IsEmpty()) << text;
  }
}

TEST(MemoryBounds, OfUlimitAreTheProcessesOwn) {
  Machine machine;
  machine.files.limits("1073741824", "unlimited");
  machine.files.write("/proc/self/status", "Name:\tx\nVmSize:\t  524288 kB\nVmData:\t  1024 kB\n");

  const auto bounds = machine.bounds();

  ASSERT_THAT(bounds, SizeIs(1));
  EXPECT_EQ(bounds[0], (MemoryBound{"ulimit -v", 1_GiB, 512_MiB, ""}));
}

TEST(WhyRefused, NamesTheBoundThatHasLeastLeft) {
  Machine machine;
  machine.files.limits("1073741824", "1073741824");
  machine.files.write("/proc/self/status",
                      "VmSize:\t1048000 kB\nVmHWM:\t 1024 kB\nVmData:\t524288 kB\n");

  EXPECT_EQ(why_refused(machine.sources()), "ulimit -v has 576.00 KiB left of 1.00 GiB");
  EXPECT_EQ(most_resident(machine.sources()), 1_MiB);
}

TEST(WhyRefused, DoesNotBlameWhatKillsInsteadOfRefusing) {
  Machine machine;
  machine.files.unified("/job");
  machine.files.group("/sys/fs/cgroup/job", {{"memory.max", "100\n"}, {"memory.current", "100\n"}});

  EXPECT_EQ(why_refused(machine.sources()), "it does not say why");
}

TEST(WhyRefused, KnowsAKernelThatPromisesNoMoreThanItHas) {
  Machine machine;
  machine.files.write("/proc/sys/vm/overcommit_memory", "2\n");
  machine.files.write("/proc/meminfo", "CommitLimit:  2048 kB\nCommitted_AS:  1024 kB\n");

  EXPECT_EQ(why_refused(machine.sources()),
            "vm.overcommit_memory = 2 has 1.00 MiB left of 2.00 MiB");
}

TEST(MemoryBounds, OfThisMachineCanBeRead) {
  for (const MemoryBound& bound : memory_bounds()) EXPECT_GT(bound.bytes, 0U) << bound.name;
}

}  // namespace
}  // namespace dstune::memory_bounds_test
