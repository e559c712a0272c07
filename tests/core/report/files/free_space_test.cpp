#include "core/report/files/free_space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace dstune::free_space_test {
namespace {

using testing::HasSubstr;

TEST(FindShortage, NamesWhatThereIsAndWhatIsNeeded) {
  EXPECT_THAT(find_shortage({true, Bytes{1} << 20U, false, 0}),
              testing::AllOf(HasSubstr("1.00 MiB of free space"), HasSubstr("16.00 MiB")));
  EXPECT_THAT(find_shortage({true, Bytes{1} << 30U, true, 7}), HasSubstr("7 files"));
}

TEST(FindShortage, EnoughAndUnknownAreNone) {
  EXPECT_EQ(find_shortage({true, Bytes{16} << 20U, true, 1000}), "");
  EXPECT_EQ(find_shortage({false, 0, false, 0}), "");
}

TEST(LookForSpace, AsksTheNearestFolderThatExists) {
  const testing_support::TemporaryDirectory directory;

  EXPECT_TRUE(look_for_space(directory / "a/b/c").known);
  EXPECT_GT(look_for_space(directory / "a/b/c").bytes, 0U);
}

TEST(LookForSpace, AFileSystemWithoutSizesIsUnknown) {
  EXPECT_FALSE(look_for_space("/proc").known);
}

}  // namespace
}  // namespace dstune::free_space_test
