#include "core/report/files/training_command.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/base/file.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::training_command_test {
namespace {

TEST(LeaveTrainingCommand, WritesTheLineWhereItIsAskedFor) {
  const testing_support::TemporaryDirectory directory;
  const std::string path = directory / "command";
  setenv(kCommandFileVariable, path.c_str(), 1);

  leave_training_command("deepspeed 'a b.py'");

  EXPECT_TRUE(is_training_started());
  EXPECT_EQ(read_text_file(path), "deepspeed 'a b.py'");
  unsetenv(kCommandFileVariable);
}

TEST(LeaveTrainingCommand, WritesNothingUnderMpirunAlone) {
  unsetenv(kCommandFileVariable);

  EXPECT_NO_THROW(leave_training_command("deepspeed t.py"));
  EXPECT_FALSE(is_training_started());
}

}  // namespace
}  // namespace dstune::training_command_test
