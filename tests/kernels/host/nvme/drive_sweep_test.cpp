#include "kernels/host/nvme/drive_sweep.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "kernels/host/nvme/scratch_file.hpp"
#include "tests/kernels/host/nvme/fake_drive.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host::drive_sweep_test {
namespace {

using dstune::testing_support::TemporaryDirectory;
using testing::Contains;
using testing::HasSubstr;
using testing_support::FakeAioCalls;
using testing_support::FakeDrive;

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kBudget = 256 * kMiB;

TEST(PlanSweep, KeepsTheBudget) {
  for (const Bytes budget : {kBudget, 300 * kMiB, 4096 * kMiB, 65536 * kMiB}) {
    for (const double rate : {1e6, 1e8, 5e9}) {
      const SweepPlan plan = plan_sweep(budget, 30, rate);

      EXPECT_LE(plan.window() * SweepPlan::kWrittenWindows + 8 * kMiB, budget) << rate;
      EXPECT_EQ(plan.operation % (8 * kMiB), 0U);
      EXPECT_GE(plan.operation, 8 * kMiB);
    }
  }
}

TEST(PlanSweep, UsesTheBudgetWhereTheDriveIsFast) {
  const SweepPlan plan = plan_sweep(4096 * kMiB, 30, 3e9);

  EXPECT_EQ(plan.operation, 136 * kMiB);
  EXPECT_EQ(plan.per_window, 1);
}

TEST(PlanSweep, WritesLessWhereTheDriveIsSlow) {
  const SweepPlan plan = plan_sweep(4096 * kMiB, 30, 100e6);

  EXPECT_EQ(plan.operation, 16 * kMiB);
}

TEST(PlanSweep, CutsLargeWindowsIntoOperations) {
  const SweepPlan plan = plan_sweep(65536 * kMiB, 300, 3e9);

  EXPECT_EQ(plan.per_window, 15);
  EXPECT_EQ(plan.operation, 144 * kMiB);
}

/// A sweep of a drive in memory, whose clock stands still between requests. The directory is real,
/// and nothing is written to it.
class SweepDrive : public testing::Test {
 protected:
  void SetUp() override {
    const auto made = ScratchFile::make(directory_.path());
    if (const auto* const error = std::get_if<FileError>(&made)) GTEST_SKIP() << to_text(*error);
    const auto found = look_at_drive(directory_.path());
    const std::string refusal = why_no_sweep(std::get<DriveFacts>(found), kBudget);
    if (!refusal.empty()) GTEST_SKIP() << "the build tree " << refusal;
    drive_.rate = [](const iocb&) { return 1e9; };
  }

  SweepResult sweep(Seconds limit = 30) {
    return sweep_drive({.directory = directory_.path(), .budget = kBudget, .limit = limit},
                       {.make_calls = [&] { return std::make_unique<FakeAioCalls>(drive_); },
                        .now =
                            [&] {
                              const std::lock_guard lock(drive_.mutex);
                              return drive_.time;
                            }});
  }

  TemporaryDirectory directory_{std::filesystem::current_path()};
  FakeDrive drive_;
};

TEST_F(SweepDrive, FindsTheBlockThatTheDriveLikes) {
  drive_.rate = [](const iocb& request) { return request.aio_nbytes > kMiB ? 2e9 : 1e9; };

  const SweepResult result = sweep();

  ASSERT_FALSE(result.fault) << to_text(*result.fault);
  const AioSweepReport& report = result.report;
  ASSERT_TRUE(report.best);
  EXPECT_EQ(report.best->block_size, 8 * kMiB);
  EXPECT_EQ(report.best->intra_op_parallelism, 1);
  EXPECT_NEAR(report.sustained.first_write, 2e9, 1e3);
  EXPECT_NEAR(report.sustained.second_write, 2e9, 1e3);
  EXPECT_NEAR(report.sustained.read, 2e9, 1e3);
  EXPECT_LE(report.points.size(), 16U);
}

TEST_F(SweepDrive, SaysWhatItWroteAndKeepsTheBudget) {
  const AioSweepReport report = sweep().report;

  EXPECT_EQ(report.written, drive_.written);
  EXPECT_EQ(report.read, drive_.read);
  EXPECT_LE(report.written, kBudget);
  EXPECT_GT(report.written, kBudget / 2);
  EXPECT_EQ(report.budget, kBudget);
  EXPECT_EQ(report.operation, 8 * kMiB);
  EXPECT_DOUBLE_EQ(report.elapsed, drive_.time);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(SweepDrive, KeepsDeepSpeedsDefaultsWhereNothingIsFaster) {
  const AioSweepReport report = sweep().report;

  EXPECT_EQ(report.best, AioSettings{});
}

TEST_F(SweepDrive, SeesTheEndOfACache) {
  const Bytes all = sweep().report.written;  // the last 40 MiB of it are the second window
  drive_.written = 0;
  drive_.rate = [&](const iocb& request) {
    const bool is_write = request.aio_lio_opcode == IOCB_CMD_PWRITE;
    return is_write && drive_.written > all - 40 * kMiB ? 2e8 : 1e9;
  };

  const AioSweepReport report = sweep().report;

  EXPECT_TRUE(report.sustained.slows_down());
  EXPECT_THAT(report.notes, Contains(HasSubstr("a cache of the drive was full")));
}

TEST_F(SweepDrive, AnEventsErrorEndsIt) {
  drive_.result = [&](const iocb& request) {
    return drive_.written > 100 * kMiB ? -EIO : static_cast<long>(request.aio_nbytes);
  };

  const SweepResult result = sweep();

  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->code, EIO);
  EXPECT_EQ(result.fault->file, directory_.path());
  EXPECT_GE(result.report.written, 100 * kMiB);
  EXPECT_FALSE(result.report.best);
}

TEST_F(SweepDrive, AQueueThatTheSystemRefusesEndsItBeforeAnythingIsWritten) {
  drive_.setup_result = -EAGAIN;

  const SweepResult result = sweep();

  ASSERT_TRUE(result.fault);
  EXPECT_EQ(result.fault->code, EAGAIN);
  EXPECT_EQ(result.report.written, 0U);
}

// A drive that answers well and keeps what was there before.
TEST_F(SweepDrive, BytesThatWereNotKeptAreAFault) {
  bool is_lost = false;
  drive_.rate = [&](const iocb& request) {
    const bool is_write = request.aio_lio_opcode == IOCB_CMD_PWRITE;
    if (is_write && !is_lost && drive_.written > 40 * kMiB) {
      drive_.bytes.at(static_cast<std::size_t>(request.aio_offset) + 5000) ^= std::byte{4};
      is_lost = true;
    }
    return 1e9;
  };

  const SweepResult result = sweep();

  ASSERT_TRUE(result.fault);
  EXPECT_THAT(to_text(*result.fault), HasSubstr("not those that were written"));
  EXPECT_EQ(result.fault->offset % kMiB, 4096U);
}

TEST_F(SweepDrive, ADriveTooSlowForTheTimeIsMeasuredAsFarAsItGoes) {
  drive_.rate = [](const iocb&) { return 20e6; };  // 0.42 s for each operation of 68

  const SweepResult result = sweep(20);

  ASSERT_FALSE(result.fault);
  EXPECT_LE(result.report.elapsed, 20);
  EXPECT_THAT(result.report.notes, Contains(HasSubstr("the time was up")));
}

TEST_F(SweepDrive, ADriveThatIsFarTooSlowGivesNoSettings) {
  drive_.rate = [](const iocb&) { return 1e6; };

  const SweepResult result = sweep();

  ASSERT_FALSE(result.fault);
  EXPECT_FALSE(result.report.best);
  EXPECT_LE(result.report.elapsed, 30);
  EXPECT_THAT(result.report.notes, Contains("the time was up before anything could be compared"));
}

TEST_F(SweepDrive, MeasuresTheRealOne) {
  const auto result = sweep_drive({.directory = directory_.path(), .budget = kBudget});

  ASSERT_FALSE(result.fault) << to_text(*result.fault);
  EXPECT_LE(result.report.written, kBudget);
  EXPECT_GT(result.report.written, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(SweepDrive, RefusesWhatIsNoDriveOrHasNoRoomBeforeItWrites) {
  const auto refused = [&](const std::string& directory, Bytes budget) {
    EXPECT_THROW(
        sweep_drive({.directory = directory, .budget = budget},
                    {.make_calls = [&] { return std::make_unique<FakeAioCalls>(drive_); }}),
        ConfigError)
        << directory;
  };
  refused("/nowhere/at/all", kBudget);
  refused("/proc", kBudget);
  refused(directory_.path(), Bytes{1} << 60U);
  EXPECT_EQ(drive_.written, 0U);
}

}  // namespace
}  // namespace dstune::host::drive_sweep_test
