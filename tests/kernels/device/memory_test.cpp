#include <stdexcept>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::memory_test {

namespace {

class MemoryTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, MemoryTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(MemoryTest, ABufferThatFitsToTheByteIsGivenAndOneByteMoreIsNot) {
  const auto limited = GetParam().make(1000);
  const Buffer first(*limited, MemoryCategory::parameters, 600);

  EXPECT_NO_THROW(Buffer(*limited, MemoryCategory::activations, 400));
  try {
    const Buffer too_much(*limited, MemoryCategory::activations, 401);
    FAIL() << "401 bytes fit beside 600 in 1000";
  } catch (const OutOfMemoryError& error) {
    EXPECT_EQ(error.category, MemoryCategory::activations);
    EXPECT_EQ(error.requested, 401U);
    EXPECT_EQ(error.in_use, 600U);
    EXPECT_EQ(error.limit, 1000U);
  }
  EXPECT_EQ(limited->memory().in_use(), 600U);
  EXPECT_EQ(limited->memory().peak().allocated, 1000U);
}

TEST_P(MemoryTest, AFullDeviceIsOutOfMemoryEvenInsideTheBudget) {
  constexpr Bytes kMoreThanAnyMachine = Bytes{1} << 62U;
  const auto unlimited = GetParam().make(~Bytes{0});

  EXPECT_THROW(Buffer(*unlimited, MemoryCategory::buckets, kMoreThanAnyMachine), OutOfMemoryError);
  EXPECT_EQ(unlimited->memory().in_use(), 0U);
}

TEST_P(MemoryTest, OperationsKeepNothingInTheBudget) {
  const Buffer a = upload(random_values(64, DType::bf16, 1), DType::bf16);
  const Buffer c = buffer(64, DType::bf16);
  const Bytes before = device().memory().in_use();
  device().memory().reset_peak();

  device().run(Gemm{.transpose_b = Transpose::yes,
                    .a = as_matrix(a.tensor(DType::bf16), 8, 8),
                    .b = as_matrix(a.tensor(DType::bf16), 8, 8),
                    .c = as_matrix(c.tensor(DType::bf16), 8, 8)});
  device().synchronize();

  EXPECT_EQ(device().memory().in_use(), before);
  EXPECT_EQ(device().memory().peak().allocated, before);
}

TEST_P(MemoryTest, AnEmptyBufferIsNoError) {
  const Buffer empty = buffer(0);

  device().run(FillZero{empty.tensor(DType::fp32)});
  device().run(Scale{empty.tensor(DType::fp32), 2});

  EXPECT_EQ(empty.tensor(DType::fp32).numel, 0);
}

TEST_P(MemoryTest, TimeGoesForward) {
  const Seconds before = device().now();

  EXPECT_GE(device().now(), before);
}

}  // namespace

}  // namespace dstune::testing::memory_test
