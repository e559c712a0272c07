#include "core/device/operations/quantize.hpp"

#include <cmath>
#include <limits>

#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::quantize_test {

namespace {

constexpr int kSizes[] = {8, 24, 96, 1024, 1032, 7992, 20008};  // of a group
constexpr int kGroups = 6;

struct Packed {
  Buffer values;
  Buffer steps;

  Tensor integers() const { return values.tensor(DType::int8); }
  Tensor scales() const { return steps.tensor(DType::fp32); }
};

class QuantizeTest : public DeviceTest {
 protected:
  Packed quantized(const std::vector<double>& values, DType dtype, Quantization how, int groups) {
    const auto numel = static_cast<std::int64_t>(values.size());
    const Buffer in = upload(values, dtype);
    Packed packed{buffer(packed_size(numel, how.bits), DType::int8), buffer(groups)};
    device().run(Quantize{
        .in = in.tensor(dtype), .how = how, .out = packed.integers(), .steps = packed.scales()});
    return packed;
  }

  std::vector<double> dequantized(const Packed& packed, int bits, DType dtype) {
    const Buffer out = buffer(packed.integers().numel * 8 / bits, dtype);
    device().run(Dequantize{
        .in = packed.integers(), .bits = bits, .steps = packed.scales(), .out = out.tensor(dtype)});
    return download(out.tensor(dtype));
  }

  std::vector<double> there_and_back(const std::vector<double>& values, DType dtype, int bits,
                                     int groups) {
    return dequantized(quantized(values, dtype, {bits}, groups), bits, dtype);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, QuantizeTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

/// f(size of a group, dtype, bits) for all combinations.
template <class F>
void for_sizes_types_and_bits(F f) {
  for (const int size : kSizes) {
    for (const DType dtype : kDTypes) {
      for (const int bits : {8, 4}) {
        SCOPED_TRACE(::testing::Message() << size << " " << name_of(dtype) << " " << bits);
        f(size, dtype, bits);
      }
    }
  }
}

double largest(const std::vector<double>& values, std::size_t begin, std::size_t size) {
  double result = 0;
  for (std::size_t i = begin; i < begin + size; ++i)
    result = std::max(result, std::fabs(values[i]));
  return result;
}

/// Groups of very different magnitudes, so that a wrong step shows.
std::vector<double> groups_of_values(int size, DType dtype) {
  auto values = random_values(std::int64_t{size} * kGroups, dtype, 5);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= std::ldexp(1.0, static_cast<int>(i) / size);  // exact in every type
  }
  return values;
}

TEST_P(QuantizeTest, ErrsByHalfAStepAtMostOrByOneAtTheTop) {
  for_sizes_types_and_bits([&](int size, DType dtype, int bits) {
    const auto values = groups_of_values(size, dtype);

    const auto result = there_and_back(values, dtype, bits, kGroups);

    const double levels = std::ldexp(1.0, bits - 1);
    const auto length = static_cast<std::size_t>(size);
    for (std::size_t begin = 0; begin < values.size(); begin += length) {
      const double step = largest(values, begin, length) / levels;
      const double rounding = tolerance_of(dtype) * levels * step;
      for (std::size_t i = begin; i < begin + length; ++i) {
        const bool top = values[i] > (levels - 0.5) * step;
        ASSERT_LE(std::fabs(result[i] - values[i]), (top ? 1.0 : 0.5) * step + rounding) << i;
      }
    }
  });
}

TEST_P(QuantizeTest, KeepsZerosAndWhatIsAWholeNumberOfSteps) {
  for_sizes_types_and_bits([&](int size, DType dtype, int bits) {
    const int levels = 1 << (bits - 1);
    std::vector<double> values(static_cast<std::size_t>(size * kGroups), 0);
    for (std::size_t i = 0; i < values.size(); i += 8) values[i] = -levels;  // fixes the step at 1
    for (std::size_t i = 0; i < values.size(); i += 3) {
      values[i] = static_cast<int>(i) % (2 * levels) - levels;
    }
    for (std::size_t i = 0; i < values.size(); i += 8) values[i] = -levels;

    EXPECT_EQ(there_and_back(values, dtype, bits, kGroups), values);
  });
}

TEST_P(QuantizeTest, GivesBackAGroupOfZerosWithTheStepOne) {
  const auto packed = quantized(std::vector<double>(64, 0), DType::fp16, {8}, 2);

  EXPECT_EQ(download(packed.scales()), (std::vector<double>{1, 1}));
  EXPECT_EQ(dequantized(packed, 8, DType::fp16), std::vector<double>(64, 0));
}

TEST_P(QuantizeTest, RoundsToEvenAndKeepsTheSignedRange) {
  const std::vector<double> values = {-128, 0.5, 1.5, 2.5, -0.5, -1.5, 127, 128};

  const auto result = there_and_back(values, DType::fp32, 8, 1);

  EXPECT_EQ(result, (std::vector<double>{-128, 0, 2, 2, 0, -2, 127, 127}));
}

TEST_P(QuantizeTest, PacksTwoValuesOfFourBitsIntoAByteLowHalfFirst) {
  const auto packed = quantized({-8, 7, 0, -1, 1, 2, 3, -4}, DType::fp32, {4}, 1);

  EXPECT_EQ(download_bytes(packed.integers().data, 4),
            (std::vector<std::uint8_t>{0x78, 0xf0, 0x21, 0xc3}));
}

TEST_P(QuantizeTest, MakesNanOfAGroupThatIsNotFiniteAndOfNoOther) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
    for (const int bits : {8, 4}) {
      std::vector<double> values(32, 1);
      values[19] = bad;

      const auto result = there_and_back(values, DType::fp16, bits, 2);

      for (std::size_t i = 0; i < 16; ++i) EXPECT_TRUE(std::isfinite(result[i]));
      for (std::size_t i = 16; i < 32; ++i) EXPECT_TRUE(std::isnan(result[i]));
    }
  }
}

TEST_P(QuantizeTest, ValuesTooSmallForAStepBecomeZero) {
  const std::vector<double> values(16, 1e-44);

  EXPECT_EQ(there_and_back(values, DType::fp32, 8, 1), std::vector<double>(16, 0));
}

TEST_P(QuantizeTest, TheLargestFiniteValuesHaveAFiniteStep) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (const int bits : {8, 4}) {
      const double levels = std::ldexp(1.0, bits - 1);
      std::vector<double> values(16, 0);
      for (int i = 0; i < 16; ++i) values[static_cast<std::size_t>(i)] = std::ldexp(i - 8, 124);

      const auto result = there_and_back(values, dtype, bits, 1);

      const double step = std::ldexp(8.0, 124) / levels;
      for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(result[i], values[i], step / 2) << i;
    }
  }
}

TEST_P(QuantizeTest, DealsThePartsOutByDeviceThenByNode) {
  constexpr int kNodes = 2;
  constexpr int kDevices = 3;
  constexpr int kPart = 16;  // two groups
  std::vector<double> values;
  for (int part = 0; part < kNodes * kDevices; ++part) {
    for (int i = 0; i < kPart; ++i) values.push_back(-8 * (part + 1) * (i / 8 + 1));
  }

  const auto packed = quantized(values, DType::fp32, {4, kNodes, kDevices}, 12);

  std::vector<double> expected;
  for (const int part : {0, 3, 1, 4, 2, 5}) {
    const auto begin = values.begin() + part * kPart;
    expected.insert(expected.end(), begin, begin + kPart);
  }
  EXPECT_EQ(dequantized(packed, 4, DType::fp32), expected);
}

TEST_P(QuantizeTest, SumOfQuantizedTensorsIsTheQuantizedSumOfWhatTheyStandFor) {
  for_sizes_types_and_bits([&](int size, DType, int bits) {
    constexpr int kParts = 3;
    const auto values = random_values(std::int64_t{size} * kGroups * kParts, DType::fp32, 9);
    const Packed parts = quantized(values, DType::fp32, {bits}, kGroups * kParts);
    const Packed result{buffer(parts.integers().numel / kParts, DType::int8), buffer(kGroups)};

    device().run(SumQuantized{.in = parts.integers(),
                              .bits = bits,
                              .steps = parts.scales(),
                              .parts = kParts,
                              .out = result.integers(),
                              .out_steps = result.scales()});

    const auto terms = dequantized(parts, bits, DType::fp32);
    std::vector<double> sum(terms.size() / kParts, 0);
    for (std::size_t i = 0; i < terms.size(); ++i) sum[i % sum.size()] += terms[i];
    const auto expected = there_and_back(sum, DType::fp32, bits, kGroups);
    const double step = largest(sum, 0, sum.size()) / std::ldexp(1.0, bits - 1);
    const auto actual = dequantized(result, bits, DType::fp32);
    int ties = 0;  // an ulp of difference in the sum may round the other way
    for (std::size_t i = 0; i < sum.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], 1.001 * step) << i;
      if (std::fabs(actual[i] - expected[i]) > 1e-3 * step) ++ties;
    }
    EXPECT_LE(ties, 1 + static_cast<int>(sum.size()) / 100);
  });
}

}  // namespace

}  // namespace dstune::testing::quantize_test
