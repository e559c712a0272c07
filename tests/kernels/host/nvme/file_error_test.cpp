#include "kernels/host/nvme/file_error.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace dstune::host::file_error_test {
namespace {

TEST(FileErrorTest, NamesOperationPlaceAndReason) {
  EXPECT_EQ(to_text({.operation = "write",
                     .file = "/ssd",
                     .offset = 3 << 20,
                     .size = 1 << 20,
                     .code = ENOSPC,
                     .remark = {}}),
            "write of 1.00 MiB at offset 3145728 in /ssd: No space left on device (ENOSPC)");
  EXPECT_EQ(to_text({.operation = "io_setup", .file = {}, .code = EAGAIN, .remark = "so it is"}),
            "io_setup: Resource temporarily unavailable (EAGAIN); so it is");
}

TEST(FileErrorTest, AShortOneHasNoReason) {
  EXPECT_EQ(
      to_text({.operation = "read", .file = "/ssd", .size = 8192, .moved = 4096, .remark = {}}),
      "read of 8.00 KiB at offset 0 in /ssd: only 4096 bytes were moved");
}

TEST(FileErrorTest, CodesThatFilesSeldomHaveAreNumbers) {
  EXPECT_EQ(error_name(EIO), "EIO");
  EXPECT_EQ(error_name(ECHILD), "errno 10");
}

}  // namespace
}  // namespace dstune::host::file_error_test
