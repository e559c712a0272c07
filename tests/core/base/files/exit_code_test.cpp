#include "core/base/files/exit_code.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/base/files/file.hpp"

namespace dstune::exit_code_test {
namespace {

class ExitCodeFile : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv(kExitCodeFileVariable);
    use_exit_code_file();
    std::filesystem::remove_all(directory_);
  }

  void use(const std::string& path) {
    setenv(kExitCodeFileVariable, path.c_str(), 1);
    use_exit_code_file();
  }

  std::string directory_ = testing::TempDir() + "dstune-exit-code-" + std::to_string(getpid());
  std::string path_ = directory_ + "/code";
  bool made_ = std::filesystem::create_directory(directory_);
};

TEST_F(ExitCodeFile, HoldsTheLastCodeAndNothingElseIsLeft) {
  std::ofstream(path_) << "a longer text that was there before";
  use(path_);

  leave_exit_code(104);
  const std::string first = read_text_file(path_);
  leave_exit_code(4);

  EXPECT_EQ(first, "104\n");
  EXPECT_EQ(read_text_file(path_), "4\n");
  const std::filesystem::directory_iterator entries(directory_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(ExitCodeFile, IsTheOneOfTheEnvironmentWhenItWasToldToBeUsed) {
  use(path_);
  unsetenv(kExitCodeFileVariable);

  leave_exit_code(3);

  EXPECT_EQ(read_text_file(path_), "3\n");
}

TEST_F(ExitCodeFile, DoesNotFollowAPlantedLink) {
  std::ofstream(directory_ + "/mine") << "mine";
  std::filesystem::create_symlink(directory_ + "/mine", path_ + ".tmp");
  use(path_);

  leave_exit_code(4);

  EXPECT_EQ(read_text_file(path_), "4\n");
  EXPECT_EQ(read_text_file(directory_ + "/mine"), "mine");
}

TEST_F(ExitCodeFile, ThatCannotBeWrittenIsNoFault) {
  use(directory_ + "/absent/code");
  leave_exit_code(1);
  use(directory_ + "/" + std::string(4000, 'x'));
  leave_exit_code(1);
  use("");
  leave_exit_code(1);

  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

}  // namespace
}  // namespace dstune::exit_code_test
