#include "kernels/host/nvme/drive.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "tests/kernels/host/nvme/own_mounts.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host::drive_test {
namespace {

using dstune::testing_support::TemporaryDirectory;
using testing_support::with_own_mounts;

constexpr Bytes kGiB = Bytes{1} << 30U;

DriveFacts good_facts() {
  return {.file_system = "ext4",
          .free = 16 * kGiB,
          .drive = "nvme0n1",
          .is_rotational = false,
          .no_drive = ""};
}

TEST(WhyNoSweep, ALocalDriveWithRoomMayBeSwept) {
  EXPECT_EQ(why_no_sweep(good_facts(), 4 * kGiB), "");
}

TEST(WhyNoSweep, FourTimesTheBudgetMustBeFree) {
  DriveFacts facts = good_facts();
  facts.free = 16 * kGiB - 1;

  EXPECT_EQ(why_no_sweep(facts, 4 * kGiB),
            "has 16.00 GiB free; a sweep that may write 4.00 GiB needs 4 times as much "
            "(--nvme-budget)");
  EXPECT_EQ(why_no_sweep(facts, 4 * kGiB - 1), "");
}

TEST(WhyNoSweep, ABudgetBeyondAllNumbersDoesNotOverflow) {
  EXPECT_NE(why_no_sweep(good_facts(), Bytes{1} << 62U), "");
}

TEST(WhyNoSweep, ReadOnlyMountsAreRefused) {
  DriveFacts facts = good_facts();
  facts.is_read_only = true;

  EXPECT_EQ(why_no_sweep(facts, kGiB),
            "is mounted read-only; accepted: a directory that can be written");
}

TEST(WhyNoSweep, WhatIsNoDriveIsRefused) {
  for (const unsigned long magic :
       {0x01021994UL, 0x858458F6UL, 0x794C7630UL, 0x6969UL, 0x65735546UL, 0xFF534D42UL}) {
    DriveFacts facts = good_facts();
    const auto kind = kind_of_file_system(magic);
    facts.file_system = kind.name;
    facts.no_drive = kind.no_drive;

    EXPECT_EQ(why_no_sweep(facts, kGiB).rfind("is on " + kind.name + ", which ", 0), 0U);
  }
}

TEST(KindOfFileSystem, LocalOnesMayBeSweptAndUnknownOnesHaveANumber) {
  EXPECT_EQ(kind_of_file_system(0xEF53).name, "ext4");
  EXPECT_EQ(kind_of_file_system(0x58465342).no_drive, "");
  EXPECT_EQ(kind_of_file_system(0x12345678).name, "0x12345678");
  EXPECT_EQ(kind_of_file_system(0x12345678).no_drive, "");
}

TEST(LookAtDrive, KnowsTheFileSystemAndTheRoomOfADirectory) {
  const TemporaryDirectory directory(std::filesystem::current_path());

  const auto looked = look_at_drive(directory.path());

  const auto& facts = std::get<DriveFacts>(looked);
  EXPECT_NE(facts.file_system, "");
  EXPECT_GT(facts.free, 0U);
  EXPECT_FALSE(facts.is_read_only);
  EXPECT_EQ(facts.drive.empty(), facts.logical_block == 0);
}

TEST(LookAtDrive, WhatIsNoDirectoryIsAFault) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "file") << "text";

  EXPECT_EQ(to_text(std::get<FileError>(look_at_drive("/nowhere/at/all"))),
            "stat in /nowhere/at/all: No such file or directory (ENOENT)");
  EXPECT_EQ(std::get<FileError>(look_at_drive(directory / "file")).code, ENOTDIR);
}

TEST(LookAtDrive, SeesMemoryAndReadOnlyMounts) {
  const TemporaryDirectory directory;
  bool is_mounted = false;
  DriveFacts before;
  DriveFacts after;
  const std::string why = with_own_mounts([&] {
    const char* path = directory.path().c_str();
    is_mounted = ::mount("none", path, "tmpfs", 0, "size=1m") == 0;
    if (!is_mounted) return;
    before = std::get<DriveFacts>(look_at_drive(path));
    is_mounted = ::mount("none", path, nullptr, MS_REMOUNT | MS_RDONLY, "size=1m") == 0;
    after = std::get<DriveFacts>(look_at_drive(path));
  });
  if (!why.empty() || !is_mounted) GTEST_SKIP() << "no tmpfs of its own: " << why;

  EXPECT_EQ(before.file_system, "tmpfs");
  EXPECT_EQ(before.no_drive, "is in memory");
  EXPECT_EQ(before.free, Bytes{1} << 20U);
  EXPECT_EQ(before.drive, "");
  EXPECT_FALSE(before.is_read_only);
  EXPECT_TRUE(after.is_read_only);
}

}  // namespace
}  // namespace dstune::host::drive_test
