#include "core/base/host/control_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/units.hpp"
#include "tests/support/kernel_files.hpp"

namespace dstune::control_groups_test {
namespace {

using namespace dstune::literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::KernelFiles;

std::vector<std::string> paths_of(const std::vector<ControlGroup>& groups) {
  std::vector<std::string> paths;
  for (const ControlGroup& group : groups) paths.push_back(group.path);
  return paths;
}

TEST(MemoryGroups, OfVersion2AreTheOwnAndAllAbove) {
  KernelFiles files;
  files.unified("/job_7/task_2");
  files.group("/sys/fs/cgroup/job_7/task_2", {});

  const auto groups = memory_groups(files.root());

  EXPECT_THAT(paths_of(groups),
              ElementsAre("/sys/fs/cgroup/job_7/task_2", "/sys/fs/cgroup/job_7", "/sys/fs/cgroup"));
  EXPECT_EQ(groups.front().version, 2);
}

TEST(MemoryGroups, OfVersion1AreThoseOfTheControllerOfMemory) {
  KernelFiles files;
  files.write("/proc/self/cgroup", "5:cpu,cpuacct:/else\n4:memory:/job 7\n0::/\n");
  files.write(
      "/proc/self/mountinfo",
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
      "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
      "35 31 0:32 / /sys/fs/my\\040groups rw,relatime shared:9 - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  files.group("/sys/fs/my groups/job 7", {});

  const auto groups = memory_groups(files.root());

  EXPECT_THAT(paths_of(groups), ElementsAre("/sys/fs/my groups/job 7", "/sys/fs/my groups"));
  EXPECT_EQ(groups.front().version, 1);
}

TEST(MemoryGroups, OfVersion1LeaveOutThoseThatDoNotCountWhatIsBelow) {
  KernelFiles files;
  files.first_version("/a/b");
  files.group("/sys/fs/cgroup/memory/a/b", {{"memory.use_hierarchy", "0\n"}});
  files.group("/sys/fs/cgroup/memory/a", {{"memory.use_hierarchy", "0\n"}});
  files.group("/sys/fs/cgroup/memory", {{"memory.use_hierarchy", "1\n"}});

  EXPECT_THAT(paths_of(memory_groups(files.root())),
              ElementsAre("/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory"));
}

TEST(MemoryGroups, InAContainerAreTheMountedOne) {
  KernelFiles files;
  files.write("/proc/self/cgroup", "4:memory:/docker/4711\n");
  files.write("/proc/self/mountinfo",
              "35 31 0:32 /docker/4711 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  files.group("/sys/fs/cgroup/memory", {});
  EXPECT_THAT(paths_of(memory_groups(files.root())), ElementsAre("/sys/fs/cgroup/memory"));

  files.write("/proc/self/cgroup", "4:memory:/kubepods/pod1/4712\n");
  EXPECT_THAT(paths_of(memory_groups(files.root())), ElementsAre("/sys/fs/cgroup/memory"))
      << "the host's path, of which nothing is to be seen";

  files.write("/proc/self/cgroup", "4:memory:/docker/4711/inner\n");
  files.group("/sys/fs/cgroup/memory/inner", {});
  EXPECT_THAT(paths_of(memory_groups(files.root())),
              ElementsAre("/sys/fs/cgroup/memory/inner", "/sys/fs/cgroup/memory"));
}

TEST(MemoryGroups, OutsideTheNamespacesRootAreTheMountedOne) {
  KernelFiles files;
  files.unified("/../other");
  files.group("/sys/fs/cgroup", {});

  EXPECT_THAT(paths_of(memory_groups(files.root())), ElementsAre("/sys/fs/cgroup"));
}

TEST(MemoryGroups, AreNoneWhereNothingSaysSo) {
  KernelFiles files;
  EXPECT_THAT(memory_groups(files.root()), IsEmpty());

  files.write("/proc/self/cgroup", "0::/job\nnonsense\n");
  EXPECT_THAT(memory_groups(files.root()), IsEmpty()) << "nothing is mounted";
}

TEST(LimitOf, Version2IsTheLowerOfMaxAndHigh) {
  KernelFiles files;
  const ControlGroup group{2, "/g"};
  files.group("/g", {{"memory.max", "max\n"}, {"memory.high", "max\n"}});
  EXPECT_FALSE(limit_of(group, files.root()));

  files.group("/g", {{"memory.max", "3221225472\n"}});
  EXPECT_EQ(limit_of(group, files.root())->bytes, 3_GiB);
  EXPECT_EQ(limit_of(group, files.root())->file, "memory.max");

  files.group("/g", {{"memory.high", "2147483648\n"}});
  EXPECT_EQ(limit_of(group, files.root())->bytes, 2_GiB);
  EXPECT_EQ(limit_of(group, files.root())->file, "memory.high");
}

TEST(LimitOf, Version1HasALargestNumberForNone) {
  KernelFiles files;
  const ControlGroup group{1, "/g"};
  files.group("/g", {{"memory.limit_in_bytes", "9223372036854771712\n"},
                     {"memory.stat", "cache 1\nhierarchical_memory_limit 419430400\n"}});
  EXPECT_FALSE(limit_of(group, files.root()));
  EXPECT_EQ(hierarchical_limit_of(group, files.root()), 400_MiB);

  files.group("/g", {{"memory.limit_in_bytes", "419430400\n"}});
  EXPECT_EQ(limit_of(group, files.root())->bytes, 400_MiB);
  EXPECT_FALSE(limit_of({1, "/nowhere"}, files.root()));
}

TEST(UsedIn, LeavesOutThePagesOfFiles) {
  KernelFiles files;
  files.group("/one", {{"memory.usage_in_bytes", "1000\n"},
                       {"memory.stat",
                        "inactive_file 1\ntotal_inactive_file 100\n"
                        "total_active_file 200\n"}});
  files.group("/two", {{"memory.current", "1000\n"},
                       {"memory.stat", "anon 5\ninactive_file 300\nactive_file 400\n"}});
  files.group("/odd", {{"memory.current", "10\n"}, {"memory.stat", "inactive_file 300\n"}});

  EXPECT_EQ(used_in({1, "/one"}, files.root()), 700U);
  EXPECT_EQ(used_in({2, "/two"}, files.root()), 300U);
  EXPECT_EQ(used_in({2, "/odd"}, files.root()), 0U) << "the two files are not of one moment";
}

TEST(OomKills, AreThoseOfTheGroupAndOfTheHost) {
  KernelFiles files;
  files.group("/one", {{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}});
  files.group("/two", {{"memory.events", "low 0\noom 2\noom_kill 4\noom_group_kill 0\n"}});
  files.write("/proc/vmstat", "nr_free_pages 1\noom_kill 9\n");

  EXPECT_EQ(oom_kills_in({1, "/one"}, files.root()), 3U);
  EXPECT_EQ(oom_kills_in({2, "/two"}, files.root()), 4U);
  EXPECT_EQ(oom_kills_in({2, "/nowhere"}, files.root()), std::nullopt);
  EXPECT_EQ(oom_kills_of_host(files.root()), 9U);
}

}  // namespace
}  // namespace dstune::control_groups_test
