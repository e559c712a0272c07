#include "core/device/operations/elementwise.hpp"

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::elementwise_test {

namespace {

class ElementwiseTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ElementwiseTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

/// f(length, dtype) for all combinations.
template <class F>
void for_lengths_and_types(F f) {
  for (const std::int64_t length : kLengths) {
    for (const DType dtype : kDTypes) {
      SCOPED_TRACE(::testing::Message() << length << " " << name_of(dtype));
      f(length, dtype);
    }
  }
}

TEST_P(ElementwiseTest, ReadGivesBackWhatWasWritten) {
  for_lengths_and_types([&](std::int64_t length, DType dtype) {
    const auto values = random_values(length, dtype, 1);

    const Buffer x = upload(values, dtype);

    EXPECT_EQ(download(x.tensor(dtype)), values);
  });
}

TEST_P(ElementwiseTest, FillsSetEveryElementOfASliceAndNoOther) {
  for_lengths_and_types([&](std::int64_t length, DType dtype) {
    const auto n = static_cast<std::size_t>(length);
    const Buffer x = upload(std::vector<double>(n + 2, 3), dtype);

    device().run(FillZero{x.tensor(dtype).slice(1, length)});

    std::vector<double> expected(n + 2, 0);
    expected.front() = expected.back() = 3;
    EXPECT_EQ(download(x.tensor(dtype)), expected);

    device().run(FillConstant{x.tensor(dtype).slice(1, length), 0.3});

    std::fill(expected.begin() + 1, expected.end() - 1, rounded(0.3, dtype));
    EXPECT_EQ(download(x.tensor(dtype)), expected);
  });
}

TEST_P(ElementwiseTest, CopyIsExact) {
  for_lengths_and_types([&](std::int64_t length, DType dtype) {
    const auto values = random_values(length, dtype, 2);
    const Buffer x = upload(values, dtype);
    const Buffer y = buffer(length, dtype);

    device().run(Copy{x.tensor(dtype), y.tensor(dtype)});

    EXPECT_EQ(download(y.tensor(dtype)), values);
  });
}

TEST_P(ElementwiseTest, CastRoundsOnce) {
  for_lengths_and_types([&](std::int64_t length, DType from) {
    for (const DType to : kDTypes) {
      const auto values = random_values(length, from, 3);
      const Buffer x = upload(values, from);
      const Buffer y = buffer(length, to);

      device().run(Cast{x.tensor(from), y.tensor(to)});

      std::vector<double> expected(values);
      for (double& value : expected) value = rounded(value, to);
      EXPECT_EQ(download(y.tensor(to)), expected);
    }
  });
}

TEST_P(ElementwiseTest, ScaleMultipliesInFp32AndRoundsOnce) {
  for_lengths_and_types([&](std::int64_t length, DType dtype) {
    auto values = random_values(length, dtype, 4);
    const Buffer x = upload(values, dtype);

    device().run(Scale{x.tensor(dtype), 1.0 / 3});

    const auto factor = static_cast<double>(static_cast<float>(1.0 / 3));
    for (double& value : values) value = rounded(static_cast<float>(value * factor), dtype);
    EXPECT_EQ(download(x.tensor(dtype)), values);
  });
}

TEST_P(ElementwiseTest, AddRoundsOnce) {
  for_lengths_and_types([&](std::int64_t length, DType dtype) {
    auto values = random_values(length, dtype, 5);
    const auto others = random_values(length, dtype, 6);
    const Buffer x = upload(values, dtype);
    const Buffer y = upload(others, dtype);

    device().run(Add{x.tensor(dtype), y.tensor(dtype)});

    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = rounded(static_cast<float>(values[i] + others[i]), dtype);
    }
    EXPECT_EQ(download(x.tensor(dtype)), values);
    EXPECT_EQ(download(y.tensor(dtype)), others);
  });
}

}  // namespace

}  // namespace dstune::testing::elementwise_test
