#include "kernels/host/nvme/aligned_buffer.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dstune::host::aligned_buffer_test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

using Lock = AlignedBuffer::Lock;

/// Takes from the calling thread the right to lock more than the limit, and sets that to 0.
class NoLocking {
 public:
  NoLocking() {
    ::getrlimit(RLIMIT_MEMLOCK, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_MEMLOCK, &none);
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct data[2] = {};
    ::syscall(SYS_capget, &header, data);
    data[0].effective &= ~(1U << CAP_IPC_LOCK);
    ::syscall(SYS_capset, &header, data);
  }
  NoLocking(const NoLocking&) = delete;
  NoLocking& operator=(const NoLocking&) = delete;
  ~NoLocking() { ::setrlimit(RLIMIT_MEMLOCK, &before_); }

 private:
  rlimit before_{};
};

/// What make() gives on a thread that may lock nothing, which ends with it.
OrFileError<AlignedBuffer> make_without_locking(Lock lock) {
  std::optional<OrFileError<AlignedBuffer>> made;
  std::thread([&] {
    const NoLocking here;
    made.emplace(AlignedBuffer::make(8192, lock));
  }).join();
  return std::move(*made);
}

TEST(AlignedBufferTest, BeginsAtAWholePageAndHasTheSizeThatWasAsked) {
  for (const Bytes size : {Bytes{4096}, Bytes{12288}, Bytes{1} << 20U}) {
    const auto made = AlignedBuffer::make(size, Lock::if_allowed);

    const auto& buffer = std::get<AlignedBuffer>(made);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kDirectAlignment, 0U);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.is_locked(), buffer.why_not_locked().empty());
    std::memset(buffer.data(), 1, size);
  }
}

TEST(AlignedBufferTest, WhatCannotBeLockedIsUsedAndSaysWhy) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers lock nothing, and say that they have";
  const auto made = make_without_locking(Lock::if_allowed);

  const auto& buffer = std::get<AlignedBuffer>(made);
  EXPECT_FALSE(buffer.is_locked());
  EXPECT_EQ(buffer.why_not_locked(),
            "mlock of 8.00 KiB: Operation not permitted (EPERM); RLIMIT_MEMLOCK (ulimit -l) is "
            "0 B");
  std::memset(buffer.data(), 1, 8192);
}

TEST(AlignedBufferTest, WhatMustBeLockedAndCannotIsAFault) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers lock nothing, and say that they have";
  const auto made = make_without_locking(Lock::required);

  ASSERT_TRUE(std::holds_alternative<FileError>(made));
  EXPECT_EQ(std::get<FileError>(made).code, EPERM);
}

TEST(AlignedBufferTest, MemoryThatThereIsNotIsAFault) {
  if (kIsSanitized) GTEST_SKIP() << "sanitizers end the process there";
  const auto made = AlignedBuffer::make(Bytes{1} << 60U, Lock::if_allowed);

  ASSERT_TRUE(std::holds_alternative<FileError>(made));
  EXPECT_EQ(std::get<FileError>(made).code, ENOMEM);
}

TEST(AlignedBufferTest, IsMovedWithItsMemory) {
  auto made = AlignedBuffer::make(4096, Lock::if_allowed);
  AlignedBuffer first = std::move(std::get<AlignedBuffer>(made));
  auto* const memory = first.data();

  const AlignedBuffer second = std::move(first);

  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.size(), 4096U);
}

}  // namespace
}  // namespace dstune::host::aligned_buffer_test
