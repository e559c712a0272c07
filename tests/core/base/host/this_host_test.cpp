#include "core/base/host/this_host.hpp"

#include <gtest/gtest.h>
#include <sys/utsname.h>

namespace dstune::this_host_test {
namespace {

TEST(ThisHost, HasTheNameThatTheSystemGives) {
  utsname system{};
  ASSERT_EQ(uname(&system), 0);

  EXPECT_EQ(host_name(), system.nodename);
}

TEST(ThisHost, NamesTheSpaceOfProcessNumbers) {
  EXPECT_EQ(process_space().rfind("pid:[", 0), 0U) << process_space();
}

TEST(UsableCores, AreSome) { EXPECT_GE(usable_cores(), 1); }

TEST(LastLevelCache, IsUnknownOrAtLeastAsLargeAsASmallFirstOne) {
  const Bytes size = last_level_cache();

  EXPECT_TRUE(size == 0 || size >= Bytes{1} << 13U) << size;
}

}  // namespace
}  // namespace dstune::this_host_test
