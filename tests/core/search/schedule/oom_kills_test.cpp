#include "core/search/schedule/oom_kills.hpp"

#include <exception>

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "tests/support/kernel_files.hpp"

namespace dstune::oom_kills_test {
namespace {

using testing_support::KernelFiles;

TEST(OomKills, AreCountedInTheOwnGroupAndOnTheHost) {
  KernelFiles files;
  files.unified("/job");
  files.group("/sys/fs/cgroup/job", {{"memory.events", "oom 1\noom_kill 2\n"}});
  files.write("/proc/vmstat", "oom_kill 5\n");

  EXPECT_EQ(count_oom_kills(files.root()), (OomKills{"/sys/fs/cgroup/job", 2, 5}));
}

TEST(OomKills, AreCountedInAGroupOfVersion1) {
  KernelFiles files;
  files.group("/g", {{"memory.oom_control", "under_oom 0\noom_kill 4\n"}});

  EXPECT_EQ(count_oom_kills_in("/g", files.root()), (OomKills{"/g", 4, std::nullopt}));
  EXPECT_EQ(count_oom_kills_in("", files.root()), OomKills{});
}

TEST(OomKills, HaveRisenInTheGroupOrElseOnTheHost) {
  EXPECT_TRUE(has_risen({"/g", 1, 7}, {"/g", 2, 8}));
  EXPECT_FALSE(has_risen({"/g", 1, 7}, {"/g", 1, 8})) << "elsewhere on the host";
  EXPECT_TRUE(has_risen({"", std::nullopt, 7}, {"", std::nullopt, 8}));
  EXPECT_TRUE(has_risen({"/g", 1, 7}, {"/g", std::nullopt, 8})) << "the group went with it";
  EXPECT_FALSE(has_risen({"/g", 1, 7}, {"/h", 9, 7}));
  EXPECT_FALSE(has_risen({}, {"/g", 1, 7})) << "nothing is known of before";
}

TEST(OomKills, ComeBackFromTheirText) {
  for (const OomKills& kills : {OomKills{"/g", 1, std::nullopt}, OomKills{"", std::nullopt, 3}}) {
    EXPECT_EQ(oom_kills_from_json(to_json(kills)), kills);
  }
  EXPECT_THROW(oom_kills_from_json({}), std::exception);
}

}  // namespace
}  // namespace dstune::oom_kills_test
