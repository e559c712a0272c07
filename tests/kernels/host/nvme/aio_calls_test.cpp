// The engine on the system's own calls, on the drive of the build tree.
#include "kernels/host/nvme/aio_calls.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/host/nvme/aio_engine.hpp"
#include "kernels/host/nvme/aligned_buffer.hpp"
#include "kernels/host/nvme/scratch_file.hpp"
#include "kernels/host/nvme/stamped_bytes.hpp"
#include "tests/kernels/host/nvme/own_mounts.hpp"
#include "tests/support/full_disk.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::host::aio_calls_test {
namespace {

using dstune::testing_support::FullDisk;
using dstune::testing_support::TemporaryDirectory;
using testing_support::with_own_mounts;

constexpr Bytes kMiB = Bytes{1} << 20U;

class SystemAioCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ScratchFile::make(directory_.path());
    if (const auto* const error = std::get_if<FileError>(&made)) {
      GTEST_SKIP() << to_text(*error);
    }
    file_.emplace(std::move(std::get<ScratchFile>(made)));
  }

  static AlignedBuffer buffer_of(Bytes size) {
    return std::move(
        std::get<AlignedBuffer>(AlignedBuffer::make(size, AlignedBuffer::Lock::if_allowed)));
  }

  static std::span<std::byte> bytes_of(const AlignedBuffer& buffer) {
    return {buffer.data(), static_cast<std::size_t>(buffer.size())};
  }

  std::optional<FileError> run(AioDirection direction, const AlignedBuffer& buffer,
                               const AioSettings& settings, Bytes offset = 0) const {
    return run_on(file_->descriptor(), direction, buffer, settings, offset);
  }

  static std::optional<FileError> run_on(int file, AioDirection direction,
                                         const AlignedBuffer& buffer, const AioSettings& settings,
                                         Bytes offset) {
    auto made = AioEngine::make(settings);
    AioEngine& engine = *std::get<0>(made);
    engine.start({.direction = direction,
                  .file = file,
                  .path = "the file",
                  .buffer = buffer.data(),
                  .size = buffer.size(),
                  .offset = offset});
    return engine.wait();
  }

  TemporaryDirectory directory_{std::filesystem::current_path()};
  std::optional<ScratchFile> file_;
};

TEST_F(SystemAioCallsTest, WhatIsWrittenIsInTheFileAndIsReadAgain) {
  std::uint64_t seed = 1;
  for (const Bytes block : {kMiB / 16, kMiB}) {
    for (const int threads : {1, 3, 8}) {
      for (int bits = 0; bits < 4; ++bits) {
        const AioSettings settings{block, 4, threads, (bits & 1) != 0, (bits & 2) != 0};
        const auto written = buffer_of(3 * kMiB);
        const auto read = buffer_of(3 * kMiB);
        fill_random(bytes_of(written), ++seed);

        const auto write_error = run(AioDirection::write, written, settings, 4096);
        const auto read_error = run(AioDirection::read, read, settings, 4096);

        ASSERT_FALSE(write_error) << to_text(*write_error);
        ASSERT_FALSE(read_error) << to_text(*read_error);
        EXPECT_EQ(std::memcmp(read.data(), written.data(), read.size()), 0);
        ASSERT_EQ(::pread(file_->descriptor(), read.data(), read.size(), 4096),
                  static_cast<ssize_t>(read.size()));
        EXPECT_EQ(std::memcmp(read.data(), written.data(), read.size()), 0);
      }
    }
  }
}

TEST_F(SystemAioCallsTest, AFileThatMayNotGrowIsAFaultOfTheFirstRequestBeyond) {
  const auto buffer = buffer_of(4 * kMiB);
  const FullDisk limit(kMiB);

  const auto error = run(AioDirection::write, buffer, {.block_size = kMiB});

  ASSERT_TRUE(error);
  EXPECT_EQ(to_text(*error),
            "write of 1.00 MiB at offset 1048576 in the file: File too large (EFBIG)");
}

TEST_F(SystemAioCallsTest, AFileThatWasTruncatedIsShort) {
  const auto buffer = buffer_of(4 * kMiB);
  ASSERT_EQ(run(AioDirection::write, buffer, {}), std::nullopt);
  ASSERT_EQ(::ftruncate(file_->descriptor(), 2 * kMiB + 8192), 0);

  const auto error = run(AioDirection::read, buffer, {.intra_op_parallelism = 2});

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, 0);
  EXPECT_EQ(error->offset, 2 * kMiB);
  EXPECT_EQ(error->moved, 8192U);
}

TEST_F(SystemAioCallsTest, WhatIsNotAlignedIsAFaultThatSaysSo) {
  const auto buffer = buffer_of(kMiB);

  const auto error = run(AioDirection::write, buffer, {}, 100);

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EINVAL);
  EXPECT_NE(to_text(*error).find("multiple of the drive's logical block"), std::string::npos);
}

TEST_F(SystemAioCallsTest, AFileThatIsClosedIsAFault) {
  const auto buffer = buffer_of(kMiB);

  const auto error = run_on(-1, AioDirection::read, buffer, {}, 0);

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, EBADF);
}

TEST_F(SystemAioCallsTest, AQueueBeyondTheSystemsLimitIsAFault) {
  auto made = AioEngine::make({.queue_depth = 1 << 30});

  ASSERT_TRUE(std::holds_alternative<FileError>(made));
  const int code = std::get<FileError>(made).code;
  EXPECT_TRUE(code == EAGAIN || code == EINVAL) << code;
}

TEST_F(SystemAioCallsTest, AFileOutlivesItsDirectory) {
  const auto buffer = buffer_of(kMiB);
  ASSERT_TRUE(std::filesystem::remove(directory_.path()));

  EXPECT_EQ(run(AioDirection::write, buffer, {}), std::nullopt);
  EXPECT_EQ(run(AioDirection::read, buffer, {}), std::nullopt);
}

TEST_F(SystemAioCallsTest, AFullFileSystemIsAFault) {
  const std::string image = directory_ / "image";
  const std::string mounted = directory_ / "mounted";
  std::filesystem::create_directory(mounted);
  bool is_mounted = false;
  std::optional<FileError> error;
  const std::string why = with_own_mounts([&] {
    const std::string command = "truncate -s 16M '" + image + "' && mkfs.ext4 -q -F '" + image +
                                "' && mount -o loop '" + image + "' '" + mounted + "'";
    is_mounted = std::system((command + " 2>/dev/null").c_str()) == 0;
    if (!is_mounted) return;
    {
      const auto small = ScratchFile::make(mounted);
      const auto buffer = buffer_of(64 * kMiB);
      error = run_on(std::get<ScratchFile>(small).descriptor(), AioDirection::write, buffer,
                     {.queue_depth = 4, .intra_op_parallelism = 2}, 0);
    }
    ::umount(mounted.c_str());
  });
  if (!why.empty() || !is_mounted) GTEST_SKIP() << "no file system of its own: " << why;

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ENOSPC) << to_text(*error);
}

}  // namespace
}  // namespace dstune::host::aio_calls_test
