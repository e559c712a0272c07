#include "kernels/host/nvme/swap_file.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/drive/drive.hpp"
#include "kernels/host/nvme/aligned_buffer.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host::swap_file_test {
namespace {

using dstune::testing_support::TemporaryDirectory;

constexpr Bytes kSize = Bytes{3} << 20U;

/// Makes a file, or skips the test where the file system has no O_DIRECT.
class SwapFileTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto memory = AlignedBuffer::make(5 * kSize, AlignedBuffer::Lock::required);
    if (const auto* const error = std::get_if<FileError>(&memory)) GTEST_SKIP() << to_text(*error);
    try {
      file_ = make_swap_file(directory_.path(), [this] { ++ticks_; });
      file_->grow_to(2 * kSize);
    } catch (const DriveError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  TemporaryDirectory directory_{std::filesystem::current_path()};
  std::unique_ptr<DriveFile> file_;
  int ticks_ = 0;
};

class Memory {
 public:
  explicit Memory(Bytes size)
      : size_(size), data_(allocate_locked(MemoryCategory::optimizer, size, 0, 0)) {}
  ~Memory() { free_locked(data_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Tensor at(Bytes offset, Bytes size) const {
    return {static_cast<std::byte*>(data_) + offset, static_cast<std::int64_t>(size), DType::uint8};
  }
  std::byte* begin() const { return static_cast<std::byte*>(data_); }
  std::byte* end() const { return begin() + size_; }
  void number(unsigned seed) const {
    for (std::byte& byte : std::span(begin(), size_)) byte = std::byte(seed = seed * 69069U + 1);
  }

 private:
  Bytes size_;
  void* data_;
};

TEST_F(SwapFileTest, GivesBackWhatWasWritten) {
  const auto queue = file_->make_queue({.intra_op_parallelism = 2});
  const Memory out(2 * kSize);
  const Memory in(2 * kSize);
  out.number(1);

  queue->start({Transfer::nvme_write, out.at(0, kSize), kSize});
  queue->start({Transfer::nvme_write, out.at(kSize, kSize), 0});
  queue->wait();
  queue->start({Transfer::nvme_read, in.at(0, kSize), kSize});
  queue->start({Transfer::nvme_read, in.at(kSize, kSize), 0});
  queue->wait();

  EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

// DeepSpeed's gradients begin at any element of their buffer.
TEST_F(SwapFileTest, ReachesMemoryWhereADriveCannot) {
  const auto queue = file_->make_queue({});
  const Memory out(kSize + 4096);
  const Memory in(kSize + 4096);
  out.number(2);

  queue->start({Transfer::nvme_write, out.at(4, kSize), 0});
  queue->wait();
  queue->start({Transfer::nvme_read, in.at(36, kSize), 0});
  queue->wait();

  EXPECT_TRUE(std::equal(out.begin() + 4, out.begin() + 4 + kSize, in.begin() + 36));
}

// As DeepSpeed reads parameters with fast_init.
TEST_F(SwapFileTest, ReadsAPartOfABlock) {
  constexpr Bytes kPart = kSize - 1000;
  const auto queue = file_->make_queue({});
  const Memory out(kSize);
  const Memory in(kSize);
  out.number(3);
  in.number(4);
  const std::byte behind = *(in.begin() + kPart);

  queue->start({Transfer::nvme_write, out.at(0, kSize), 0});
  queue->wait();
  queue->start({Transfer::nvme_read, in.at(0, kPart), 0});
  queue->wait();

  EXPECT_TRUE(std::equal(out.begin(), out.begin() + kPart, in.begin()));
  EXPECT_EQ(*(in.begin() + kPart), behind);
}

TEST_F(SwapFileTest, ASizeThatNoDriveTakesIsAFault) {
  const auto queue = file_->make_queue({});
  const Memory memory(4096);

  EXPECT_THROW(queue->start({Transfer::nvme_write, memory.at(0, 1000), 0}), DriveError);
}

TEST_F(SwapFileTest, ReadingBehindTheEndIsAFault) {
  const auto queue = file_->make_queue({});
  const Memory memory(kSize);

  queue->start({Transfer::nvme_read, memory.at(0, kSize), 64 * kSize});

  EXPECT_THROW(queue->wait(), DriveError);
}

TEST_F(SwapFileTest, LeavesATenthOfWhatIsFree) {
  const Bytes free = std::filesystem::space(directory_.path()).available;
  try {
    file_->grow_to(free / 100 * 95);
    FAIL() << "it took 95 % of what is free";
  } catch (const DriveError& error) {
    EXPECT_NE(std::string(error.what()).find("of them are left to others"), std::string::npos)
        << error.what();
  }
}

TEST(SwapFile, IsNoneInMemory) {
  const TemporaryDirectory directory("/dev/shm");
  try {
    make_swap_file(directory.path(), [] {});
    FAIL() << "memory was taken for a drive";
  } catch (const DriveError&) {  // tmpfs had no O_DIRECT before Linux 6.6
    EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
  }
}

TEST_F(SwapFileTest, LiesInTheNearestDirectoryThatIsThere) {
  EXPECT_NO_THROW(make_swap_file(directory_ / "not/yet/there", [] {}));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

}  // namespace
}  // namespace dstune::host::swap_file_test
