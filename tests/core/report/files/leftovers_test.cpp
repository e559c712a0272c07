#include "core/report/files/leftovers.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/files/file.hpp"
#include "core/base/text.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::leftovers_test {
namespace {

namespace fs = std::filesystem;

using testing_support::TemporaryDirectory;

// A process that is gone, and whose id nobody has.
RunProcess make_gone() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  RunProcess gone = this_process();
  gone.pid = static_cast<int>(child);
  gone.start_ticks = 1;
  return gone;
}

class LeftoversTest : public testing::Test {
 protected:
  std::string put(const std::string& path) const {
    ensure_directory(fs::path(path).parent_path().string());
    write_file_atomically(path, "x", Durability::process_crash);
    return path;
  }

  std::string make_launcher_folder(int pid) const {
    const std::string folder = concat(directory_.path(), "/ompi.host.0/pid.", pid);
    put(folder + "/0/0/shared");
    return folder;
  }

  void remove(const std::string& own = "") const {
    remove_leftovers(results_, exps_, {{"z0_gas1_tmbspg1"}, {gone_}}, own);
  }

  TemporaryDirectory directory_;
  std::string results_ = directory_ / "results";
  std::string exps_ = directory_ / "exps";
  RunProcess gone_ = make_gone();
};

TEST_F(LeftoversTest, UnfinishedFilesOfEarlierRunsGoAndNothingElse) {
  const std::string end = concat(".", gone_.pid, ".tmp");
  for (const auto& path :
       {results_ + "/summary.txt", results_ + "/journal.jsonl", results_ + "/journal.jsonl.bak",
        results_ + "/z0_gas1_tmbspg1/exp.json", exps_ + "/z0_gas1_tmbspg1.json"}) {
    put(path + end);
  }
  const std::string others[] = {put(results_ + "/summary.txt"),
                                put(results_ + "/summary.txt.1.tmp"),
                                put(results_ + "/summary.txt.tmp"),
                                put(results_ + "/thesis.tex" + end),
                                put(results_ + "/z7_gas1_tmbspg1/exp.json" + end),
                                put(exps_ + "/z7_gas1_tmbspg1.json" + end)};

  remove();

  std::size_t left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory_.path())) {
    left += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(left, std::size(others));
  for (const auto& path : others) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(LeftoversTest, AFolderThatAnotherProgramDescribesKeepsAll) {
  const std::string end = concat(".", gone_.pid, ".tmp");
  put(results_ + "/z0_gas1_tmbspg1/exp.json");
  const std::string unfinished = put(results_ + "/z0_gas1_tmbspg1/metrics.json" + end);

  remove();

  EXPECT_TRUE(fs::exists(unfinished));
}

TEST_F(LeftoversTest, TheFolderOfADeadLauncherGoes) {
  gone_.launcher_folder = make_launcher_folder(gone_.pid);
  const std::string another = make_launcher_folder(1);

  remove();

  EXPECT_FALSE(fs::exists(gone_.launcher_folder));
  EXPECT_TRUE(fs::exists(another));
}

TEST_F(LeftoversTest, TheFolderOfALivingLauncherStays) {
  gone_.launcher_folder = make_launcher_folder(static_cast<int>(::getpid()));

  remove();

  EXPECT_TRUE(fs::exists(gone_.launcher_folder));
}

TEST_F(LeftoversTest, OnlyWhatIsNamedLikeOneGoes) {
  for (const std::string& folder : {directory_ / "home", directory_ / "home/pid.77"}) {
    put(folder + "/file");
    gone_.launcher_folder = folder;

    remove();

    EXPECT_TRUE(fs::exists(folder + "/file"));
  }
}

TEST_F(LeftoversTest, FoldersOfOtherHostsAndOurOwnStay) {
  gone_.launcher_folder = make_launcher_folder(gone_.pid);

  remove(gone_.launcher_folder);
  EXPECT_TRUE(fs::exists(gone_.launcher_folder));

  gone_.host += "x";
  remove();
  EXPECT_TRUE(fs::exists(gone_.launcher_folder));
}

}  // namespace
}  // namespace dstune::leftovers_test
