#include "tests/support/swapping.hpp"

#include <variant>

#include <gtest/gtest.h>

#include "kernels/host/nvme/aligned_buffer.hpp"
#include "kernels/host/nvme/scratch_file.hpp"

namespace dstune::test {

std::string why_no_swapping_here(const std::string& directory) {
  const auto file = host::ScratchFile::make(directory);
  if (const auto* const error = std::get_if<host::FileError>(&file)) return to_text(*error);
  constexpr Bytes kBuffersOfTest = Bytes{256} << 20U;
  const auto memory =
      host::AlignedBuffer::make(kBuffersOfTest, host::AlignedBuffer::Lock::required);
  if (const auto* const error = std::get_if<host::FileError>(&memory)) return to_text(*error);
  return "";
}

void expect_same(const TrainingRun& actual, const TrainingRun& expected) {
  EXPECT_EQ(actual.parameters, expected.parameters);
  EXPECT_EQ(actual.norms, expected.norms);
  EXPECT_EQ(actual.losses, expected.losses);
}

}  // namespace dstune::test
