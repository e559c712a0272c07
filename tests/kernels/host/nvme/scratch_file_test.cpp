#include "kernels/host/nvme/scratch_file.hpp"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/kernels/host/nvme/own_mounts.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host::scratch_file_test {
namespace {

using dstune::testing_support::TemporaryDirectory;
using testing_support::with_own_mounts;

/// @returns none, and skips the test, if the file system has no O_DIRECT
template <class Make>
void expect_nameless(Make make) {
  const TemporaryDirectory directory(std::filesystem::current_path());

  const auto made = make(directory.path());

  if (const auto* const error = std::get_if<FileError>(&made); error && error->code == EINVAL) {
    GTEST_SKIP() << to_text(*error);
  }
  const auto& file = std::get<ScratchFile>(made);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  struct stat found {};
  ASSERT_EQ(::fstat(file.descriptor(), &found), 0);
  EXPECT_EQ(found.st_nlink, 0U);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_NE(::fcntl(file.descriptor(), F_GETFL) & O_DIRECT, 0);
  EXPECT_EQ(::fcntl(file.descriptor(), F_GETFL) & O_ACCMODE, O_RDWR);
  EXPECT_EQ(file.directory(), directory.path());
}

TEST(ScratchFileTest, HasNoName) { expect_nameless(ScratchFile::make); }

TEST(ScratchFileTest, LosesItsNameAtOnceWhereItMustHaveOne) {
  expect_nameless(ScratchFile::make_unlinked);
}

TEST(ScratchFileTest, ADirectoryThatIsNotThereIsAFault) {
  for (const auto make : {ScratchFile::make, ScratchFile::make_unlinked}) {
    const auto made = make("/nowhere/at/all");

    ASSERT_TRUE(std::holds_alternative<FileError>(made));
    EXPECT_EQ(to_text(std::get<FileError>(made)),
              "open with O_DIRECT in /nowhere/at/all: No such file or directory (ENOENT)");
  }
}

TEST(ScratchFileTest, AFileSystemWithoutDirectIoSaysSoAndKeepsNothing) {
  const TemporaryDirectory directory(std::filesystem::current_path());
  std::optional<FileError> errors[2];
  bool is_empty = false;
  bool is_mounted = false;
  const std::string why = with_own_mounts([&] {
    is_mounted = ::mount("none", directory.path().c_str(), "ramfs", 0, nullptr) == 0;
    if (!is_mounted) return;
    int number = 0;
    for (const auto make : {ScratchFile::make, ScratchFile::make_unlinked}) {
      const auto made = make(directory.path());
      if (const auto* const error = std::get_if<FileError>(&made)) errors[number] = *error;
      ++number;
    }
    is_empty = std::filesystem::is_empty(directory.path());
  });
  if (!why.empty() || !is_mounted) GTEST_SKIP() << "no ramfs of its own: " << why;

  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, EINVAL);
    EXPECT_EQ(error->remark, "this file system has no O_DIRECT");
  }
  EXPECT_TRUE(is_empty);
}

}  // namespace
}  // namespace dstune::host::scratch_file_test
