#include "core/device/drive/drive.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/clocked_device.hpp"

namespace dstune::drive_test {
namespace {

constexpr auto kCategory = MemoryCategory::optimizer;

/// Its drive has room for 8 KiB.
class SmallDrive final : public DryDevice {
 public:
  SmallDrive() : DryDevice(Bytes{1} << 30U) {}

  std::unique_ptr<DriveFile> open_drive_file(const std::string& /*directory*/) override {
    return std::make_unique<File>();
  }

 private:
  class File final : public DriveFile {
   public:
    void grow_to(Bytes size) override {
      if (size > 8192) throw DriveError("full");
    }
    std::unique_ptr<DriveQueue> make_queue(const AioSettings& /*settings*/) override {
      throw std::logic_error("nobody asks for one");
    }
  };
};

/// Reads take a second, writes two.
class SlowDrive final : public ClockedDevice {
 public:
  SlowDrive() : ClockedDevice(Bytes{1} << 30U) {}

  bool overlaps() const override { return true; }
  void spend_host_time(Seconds time) override { advance_host(time); }

 private:
  Seconds time_on_drive(const DriveTransfer& transfer) override {
    return transfer.direction == Transfer::nvme_read ? 1 : 2;
  }
};

TEST(Drive, PiecesBeginWhereEveryDriveTakesThemAndCountAsTheyAre) {
  SmallDrive device;
  Drive drive(device, "/");

  EXPECT_EQ(drive.take(kCategory, 1000).offset, 0U);
  EXPECT_EQ(drive.take(kCategory, 2000).offset, 4096U);
  EXPECT_EQ(device.host_memory().on_drive(), 3000U);
  EXPECT_EQ(device.host_memory().peak().drive, 3000U);
  EXPECT_EQ(device.host_memory().held(), 0U);
}

TEST(Drive, AFullOneIsOutOfMemory) {
  SmallDrive device;
  Drive drive(device, "/");
  drive.take(kCategory, 8000);
  try {
    drive.take(kCategory, 1);
    FAIL() << "8001 bytes fit into two blocks of 4 KiB";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.tier, Tier::nvme);
    EXPECT_EQ(error.refusal, "full");
    EXPECT_EQ(error.in_use, 8000U);
  }
}

TEST(Drive, GivesItsPiecesBack) {
  SmallDrive device;
  { Drive(device, "/").take(kCategory, 1000); }

  EXPECT_EQ(device.host_memory().on_drive(), 0U);
}

TEST(DriveHandle, WorksWhileTheHostDoesSomethingElse) {
  SlowDrive device;
  Drive drive(device, "/");
  const DriveExtent file = drive.take(kCategory, 4096);
  const Buffer memory(device, kCategory, 4096, Tier::locked);
  DriveHandle handle(drive, {});

  handle.write(memory.tensor(DType::fp32), file, TransferPurpose::state);
  handle.read(file, memory.tensor(DType::fp32), TransferPurpose::state);
  EXPECT_EQ(device.now(), 0);
  device.spend_host_time(2.5);
  handle.wait();
  EXPECT_EQ(device.now(), 3);
  device.spend_host_time(1);
  handle.wait();
  EXPECT_EQ(device.now(), 4);

  ASSERT_EQ(device.ledger().syncs().size(), 1U);
  EXPECT_EQ(device.ledger().syncs().front().reason, HostSync::drive);
  EXPECT_EQ(device.ledger().syncs().front().calls, 2U);
  EXPECT_EQ(device.ledger().syncs().front().time, 0.5);
  ASSERT_EQ(device.ledger().transfers().size(), 2U);
  EXPECT_EQ(device.ledger().transfers().front().transfer, Transfer::nvme_write);
  EXPECT_EQ(device.ledger().transfers().front().tier, Tier::nvme);
  EXPECT_EQ(device.ledger().transfers().front().bytes, 4096U);
}

TEST(DriveHandle, ATensorThatIsLongerThanItsFileIsAFault) {
  SlowDrive device;
  Drive drive(device, "/");
  const DriveExtent file = drive.take(kCategory, 1000);
  const Buffer memory(device, kCategory, 1004, Tier::locked);
  DriveHandle handle(drive, {});

  EXPECT_THROW(handle.read(file, memory.tensor(DType::fp32), TransferPurpose::state),
               std::logic_error);
}

}  // namespace
}  // namespace dstune::drive_test
