#include <algorithm>

#include "core/device/operations/random.hpp"
#include "core/device/random_bits.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::dropout_test {

namespace {

class DropoutTest : public DeviceTest {
 protected:
  struct Result {
    std::vector<double> out;
    std::vector<std::uint8_t> mask;
    Buffer mask_buffer;
  };

  Result dropout(const std::vector<double>& values, DType dtype, double probability,
                 std::uint64_t seed) {
    const Buffer x = upload(values, dtype);
    const Buffer out = buffer(static_cast<std::int64_t>(values.size()), dtype);
    Buffer mask(device(), MemoryCategory::temporaries, values.size());
    device().run(Dropout{.in = x.tensor(dtype),
                         .probability = probability,
                         .seed = seed,
                         .mask = mask.tensor(DType::int8),
                         .out = out.tensor(dtype)});
    return {download(out.tensor(dtype)), download_bytes(mask.data(), mask.size()), std::move(mask)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, DropoutTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

std::vector<double> masked(std::vector<double> values, const std::vector<std::uint8_t>& mask,
                           double probability, DType dtype) {
  const auto factor = static_cast<double>(static_cast<float>(1 / (1 - probability)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = mask[i] == 0 ? 0 : rounded(static_cast<float>(values[i] * factor), dtype);
  }
  return values;
}

TEST_P(DropoutTest, ForwardAndBackwardApplyTheMaskAndScaleWhatIsKept) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto values = random_values(length, dtype, 1);
      const auto d_out = random_values(length, dtype, 2);
      const Result result = dropout(values, dtype, 0.1, 5);
      const Buffer d = upload(d_out, dtype);

      device().run(DropoutBackward{.d_out = d.tensor(dtype),
                                   .probability = 0.1,
                                   .mask = result.mask_buffer.tensor(DType::int8),
                                   .d_in = d.tensor(dtype)});

      EXPECT_EQ(result.out, masked(values, result.mask, 0.1, dtype));
      EXPECT_EQ(download(d.tensor(dtype)), masked(d_out, result.mask, 0.1, dtype));
    }
  }
}

TEST_P(DropoutTest, DropsItsShare) {
  const std::vector<double> values(100000, 1);

  const Result result = dropout(values, DType::fp32, 0.3, 5);

  EXPECT_NEAR(static_cast<double>(std::count(result.mask.begin(), result.mask.end(), 0)), 30000,
              600);
}

TEST_P(DropoutTest, MaskDependsOnTheSeedAlone) {
  const auto values = random_values(129, DType::fp32, 1);

  const Result first = dropout(values, DType::fp32, 0.5, 1);

  EXPECT_EQ(first.mask, dropout(values, DType::bf16, 0.5, 1).mask);
  EXPECT_NE(first.mask, dropout(values, DType::fp32, 0.5, 2).mask);
}

TEST_P(DropoutTest, MaskIsTheSameOnEveryBackend) {
  constexpr std::size_t kCount = 20011;

  const Result result = dropout(std::vector<double>(kCount, 1), DType::bf16, 0.2, 77);

  std::vector<std::uint8_t> expected;
  for (std::size_t i = 0; i < kCount; ++i) {
    expected.push_back(is_kept(make_key(77), i, drop_threshold(0.2)) ? 1 : 0);
  }
  EXPECT_EQ(result.mask, expected);
}

TEST_P(DropoutTest, ProbabilityZeroKeepsEverything) {
  const auto values = random_values(65, DType::fp32, 1);

  EXPECT_EQ(dropout(values, DType::fp32, 0, 1).out, values);
}

}  // namespace

}  // namespace dstune::testing::dropout_test
