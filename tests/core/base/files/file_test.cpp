#include "core/base/files/file.hpp"

#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::file_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::FullDisk;
using testing_support::TemporaryDirectory;

std::size_t entries(const std::string& directory) {
  const std::filesystem::directory_iterator begin(directory);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator{}));
}

TEST(WriteFileAtomically, ReplacesTheContentAndLeavesNothingElse) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.json";

  write_file_atomically(path, "old and longer");
  write_file_atomically(path, "new", Durability::process_crash);

  EXPECT_EQ(read_text_file(path), "new");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(WriteFileAtomically, FullDiskKeepsTheOldContent) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.json";
  write_file_atomically(path, "old");
  const FullDisk full_disk(10);

  EXPECT_THAT([&] { write_file_atomically(path, std::string(100, 'x')); },
              ThrowsMessage<Error>(AllOf(HasSubstr("cannot write " + path), HasSubstr("large"))));
  EXPECT_EQ(read_text_file(path), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(WriteFileAtomically, DoesNotFollowAPlantedLink) {
  const TemporaryDirectory directory;
  const std::string mine = directory / "mine";
  const std::string path = directory / "a.json";
  write_file_atomically(mine, "mine");
  std::filesystem::create_symlink(mine, temporary_path(path));

  write_file_atomically(path, "new");

  EXPECT_EQ(read_text_file(path), "new");
  EXPECT_EQ(read_text_file(mine), "mine");
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path)));
}

TEST(WriteFileAtomically, FailsWhereADirectoryIsInTheWay) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.json";
  std::filesystem::create_directory(temporary_path(path));

  EXPECT_THAT([&] { write_file_atomically(path, "x"); },
              ThrowsMessage<Error>(HasSubstr("cannot replace")));
}

TEST(WriteFileAtomically, NamesPathAndReason) {
  const TemporaryDirectory directory;
  const std::string path = directory / "missing/a.json";

  EXPECT_THAT([&] { write_file_atomically(path, "x"); },
              ThrowsMessage<Error>(AllOf(HasSubstr(path), HasSubstr("No such file or directory"))));
}

TEST(WriteAll, FullDeviceIsAnError) {
  const auto file = open_file("/dev/full", O_WRONLY);

  EXPECT_THAT([&] { write_all(file, "x", "/dev/full"); },
              ThrowsMessage<Error>("cannot write /dev/full: No space left on device"));
}

TEST(ReadTextFile, ReadsEveryByte) {
  const TemporaryDirectory directory;
  const std::string content = std::string(200'000, 'a') + std::string("\0\n\xff", 3);
  write_file_atomically(directory / "a", content);

  EXPECT_EQ(read_text_file(directory / "a"), content);
}

TEST(ReadTextFile, SaysWhyItCannot) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "long", std::string(1025, 'x'));

  EXPECT_THAT([&] { read_text_file(directory / "none"); },
              ThrowsMessage<Error>(HasSubstr("none: No such file or directory")));
  EXPECT_THAT([&] { read_text_file(directory.path()); },
              ThrowsMessage<Error>(HasSubstr("Is a directory")));
  EXPECT_THAT([&] { read_text_file(directory / "long", 1024); },
              ThrowsMessage<Error>(HasSubstr("longer than 1.00 KiB")));
}

TEST(EnsureDirectory, MakesParentsAndAcceptsWhatIsThere) {
  const TemporaryDirectory directory;

  ensure_directory(directory / "a/b/c");
  ensure_directory(directory / "a/b/c");

  EXPECT_TRUE(std::filesystem::is_directory(directory / "a/b/c"));
}

TEST(EnsureDirectory, AFileInTheWayIsAnError) {
  const TemporaryDirectory directory;
  write_file_atomically(directory / "a", "x");

  EXPECT_THAT([&] { ensure_directory(directory / "a"); },
              ThrowsMessage<Error>(HasSubstr("Not a directory")));
  EXPECT_THAT([&] { ensure_directory(directory / "a/b"); },
              ThrowsMessage<Error>(HasSubstr("Not a directory")));
}

}  // namespace
}  // namespace dstune::file_test
