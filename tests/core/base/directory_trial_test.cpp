#include "core/base/directory_trial.hpp"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace dstune::directory_trial_test {
namespace {

using testing_support::TemporaryDirectory;

bool is_empty(const TemporaryDirectory& directory) {
  return std::filesystem::is_empty(directory.path());
}

TEST(WhyNotWritable, FindsNothingWrongAndLeavesNothingBehind) {
  const TemporaryDirectory directory;

  EXPECT_EQ(why_not_writable(directory.path()), "");
  EXPECT_EQ(why_not_writable(directory / "a/b/c"), "");
  EXPECT_EQ(why_not_writable(directory / "a/"), "");
  EXPECT_TRUE(is_empty(directory));
}

TEST(WhyNotWritable, NamesAFileThatIsInTheWay) {
  const TemporaryDirectory directory;
  const std::string file = directory / "file";
  std::ofstream(file).put('x');

  EXPECT_EQ(why_not_writable(file), "cannot be written to: " + file + ": Not a directory");
  EXPECT_EQ(why_not_writable(file + "/a/b"),
            "cannot be written to: " + file + "/a: Not a directory");
}

TEST(WhyNotWritable, NamesAFileSystemThatTakesNoDirectories) {
  EXPECT_EQ(why_not_writable("/proc/dstune/a"),
            "cannot be written to: /proc/dstune: No such file or directory");
  EXPECT_NE(why_not_writable("/proc"), "");
}

TEST(WhyNotWritable, RemovesWhatItMadeBeforeTheFault) {
  const TemporaryDirectory directory;

  EXPECT_NE(why_not_writable(directory / ("a/" + std::string(300, 'x'))), "");
  EXPECT_TRUE(is_empty(directory));
}

TEST(WhyNotWritable, OfRunsThatStartTogetherNoneIsInTheWay) {
  const TemporaryDirectory directory;
  std::atomic<int> faults = 0;
  std::vector<std::jthread> runs;
  for (int run = 0; run < 4; ++run) {
    runs.emplace_back([&, path = directory / ("out/" + std::to_string(run))] {
      for (int i = 0; i < 50; ++i) faults += why_not_writable(path).empty() ? 0 : 1;
    });
  }
  runs.clear();

  EXPECT_EQ(faults, 0);
  EXPECT_TRUE(is_empty(directory));
}

}  // namespace
}  // namespace dstune::directory_trial_test
