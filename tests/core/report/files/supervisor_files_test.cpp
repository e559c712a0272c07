#include "core/report/files/supervisor_files.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::supervisor_files_test {
namespace {

TEST(LeaveTrainingCommand, WritesTheWordsWhereTheyAreAskedFor) {
  const testing_support::TemporaryDirectory directory;
  const std::string path = directory / "command";
  setenv(kCommandFileVariable, path.c_str(), 1);

  leave_training_command({"deepspeed", "a 'b'\n.py", ""});

  EXPECT_TRUE(is_training_started());
  EXPECT_EQ(read_text_file(path), std::string("deepspeed\0a 'b'\n.py\0\0", 21));
  unsetenv(kCommandFileVariable);
}

TEST(LeaveTrainingCommand, WritesNothingUnderMpirunAlone) {
  unsetenv(kCommandFileVariable);

  EXPECT_NO_THROW(leave_training_command({"deepspeed", "t.py"}));
  EXPECT_FALSE(is_training_started());
}

TEST(LeaveResultsFolder, WritesAnAbsolutePathAsItIs) {
  const testing_support::TemporaryDirectory directory;
  const std::string path = directory / "results";
  setenv(kResultsFileVariable, path.c_str(), 1);

  leave_results_folder("./a \xC3\xA4\n\"b\"");

  EXPECT_EQ(read_text_file(path), std::filesystem::current_path().string() + "/a \xC3\xA4\n\"b\"");
  unsetenv(kResultsFileVariable);
  EXPECT_NO_THROW(leave_results_folder("a"));
}

}  // namespace
}  // namespace dstune::supervisor_files_test
