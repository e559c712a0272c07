#include "core/device/operations/activations.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::multiply_test {

namespace {

class MultiplyTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, MultiplyTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_P(MultiplyTest, ElementsAreMultipliedAlsoInPlace) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      const auto a = random_values(length, dtype, 1);
      const auto b = random_values(length, dtype, 2);
      const Buffer left = upload(a, dtype);
      const Buffer right = upload(b, dtype);
      const Buffer out = buffer(length, dtype);

      device().run(Multiply{left.tensor(dtype), right.tensor(dtype), out.tensor(dtype)});
      device().run(Multiply{left.tensor(dtype), right.tensor(dtype), right.tensor(dtype)});

      std::vector<double> expected = a;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = rounded(a[i] * b[i], dtype);
      }
      EXPECT_EQ(download(out.tensor(dtype)), expected);
      EXPECT_EQ(download(right.tensor(dtype)), expected);
    }
  }
}

}  // namespace

}  // namespace dstune::testing::multiply_test
