#include "core/device/operations/elementwise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/kernels/host/host_case.hpp"

namespace dstune::host::elementwise_test {

namespace {

using test::dtype_of;
using test::kCounts;
using test::numbers;
using test::tensor_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An IEEE format of `bits` bits, of which `fraction` are those after the point.
struct Format {
  int fraction;
  int exponent;
};

template <class T>
constexpr Format format_of() {
  if constexpr (std::is_same_v<T, BFloat16>) return {7, 8};
  if constexpr (std::is_same_v<T, Float16>) return {10, 5};
  return {23, 8};
}

/// The nearest number of the format, ties to even.
double rounded(double value, Format format) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double unit = std::ldexp(1.0, exponent - format.fraction);
  const double nearest = std::nearbyint(value / unit) * unit;
  const double beyond = std::ldexp(1.0, bias + 1);
  return std::abs(nearest) >= beyond ? std::copysign(kInfinity, value) : nearest;
}

/// What the bits of an element mean.
double meaning_of(std::uint32_t bits, Format format) {
  const std::uint32_t fraction = bits & ((1U << format.fraction) - 1U);
  const auto power = static_cast<int>((bits >> format.fraction) & ((1U << format.exponent) - 1U));
  const double sign = ((bits >> (format.fraction + format.exponent)) & 1U) != 0 ? -1 : 1;
  const int bias = (1 << (format.exponent - 1)) - 1;
  if (power == (1 << format.exponent) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * kInfinity;
  }
  const std::uint32_t whole = power == 0 ? fraction : fraction | (1U << format.fraction);
  return sign * std::ldexp(static_cast<double>(whole), std::max(power, 1) - bias - format.fraction);
}

template <class T>
double number_of(T element) {
  if constexpr (std::is_same_v<T, float>) {
    return meaning_of(std::bit_cast<std::uint32_t>(element), format_of<T>());
  } else {
    return meaning_of(element.bits, format_of<T>());
  }
}

/// The same number with the same sign of zero, or both NaN.
bool is_same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

template <class T>
std::vector<T> as_type(const std::vector<float>& values) {
  std::vector<T> result;
  for (const float value : values) result.push_back(from_float<T>(value));
  return result;
}

template <class T>
bool have_same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// f(std::type_identity<T>{}) for the three types of floating-point elements.
template <class F>
void for_types(F f) {
  f(std::type_identity<float>{});
  f(std::type_identity<BFloat16>{});
  f(std::type_identity<Float16>{});
}

template <class From, class To>
void expect_cast(std::vector<From> in) {
  SCOPED_TRACE(testing::Message() << name_of(dtype_of<From>()) << " -> " << name_of(dtype_of<To>())
                                  << ", " << in.size() << " elements");
  std::vector<double> expected;
  for (const From element : in) expected.push_back(rounded(number_of(element), format_of<To>()));
  std::vector<To> by_device(in.size());
  cpu::CpuDevice(1).run(Cast{tensor_of(in), tensor_of(by_device)});

  std::vector<To> last;
  test::for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
    std::vector<To> out(in.size());

    compute(threads, Cast{tensor_of(in), tensor_of(out)}, options);

    EXPECT_TRUE(have_same_bytes(out, by_device));
    last = out;
  });

  std::size_t wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    wrong += is_same(number_of(last[i]), expected[i]) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(HostElementwiseTest, CastRoundsOnceForEveryTeamAndInstructionSet) {
  for (const std::int64_t count : kCounts) {
    expect_cast<float, BFloat16>(numbers(count, -3, 3, 1));
    expect_cast<float, Float16>(numbers(count, -3, 3, 1));
  }
  for_types([]<class From>(std::type_identity<From>) {
    for_types([]<class To>(std::type_identity<To>) {
      expect_cast<From, To>(as_type<From>(numbers(10007, -3, 3, 1)));
    });
  });
}

/// All that can go wrong: every number of the 16-bit type, what lies in the middle between it and
/// the next one, and beside that.
template <class To>
std::vector<float> near_ties() {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x8000U; ++bits) {
    const double here = meaning_of(bits, format_of<To>());
    const double next = meaning_of(bits + 1, format_of<To>());
    if (std::isnan(here) || std::isnan(next)) continue;
    const auto middle =
        static_cast<float>(std::isinf(next) ? here * 1.0009765625 : (here + next) / 2);
    for (const float value : {static_cast<float>(here), std::nextafterf(middle, 0), middle,
                              std::nextafterf(middle, HUGE_VALF)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

TEST(HostElementwiseTest, CastsToSixteenBitsAreRightAtEveryTie) {
  expect_cast<float, BFloat16>(near_ties<BFloat16>());
  expect_cast<float, Float16>(near_ties<Float16>());
}

template <class From>
std::vector<From> all_numbers() {
  std::vector<From> values;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const From element{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(number_of(element))) values.push_back(element);
  }
  return values;
}

TEST(HostElementwiseTest, CastsFromSixteenBitsAreRightForEveryNumber) {
  expect_cast<BFloat16, float>(all_numbers<BFloat16>());
  expect_cast<Float16, float>(all_numbers<Float16>());
  expect_cast<BFloat16, Float16>(all_numbers<BFloat16>());
  expect_cast<Float16, BFloat16>(all_numbers<Float16>());
}

TEST(HostElementwiseTest, NanStaysNan) {
  test::for_teams_and_instructions([](Threads& threads, const PassOptions& options) {
    std::vector<float> in(35, std::bit_cast<float>(0x7f800001U));
    std::vector<Float16> halves(in.size());
    std::vector<BFloat16> others(in.size());

    compute(threads, Cast{tensor_of(in), tensor_of(halves)}, options);
    compute(threads, Cast{tensor_of(in), tensor_of(others)}, options);

    for (std::size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE(std::isnan(number_of(halves[i])));
      EXPECT_TRUE(std::isnan(number_of(others[i])));
    }
  });
}

template <class T>
void expect_scale(std::int64_t count, double factor) {
  SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>()) << ", " << count << " elements");
  const std::vector<T> before = as_type<T>(numbers(count, -3, 3, 2));
  std::vector<T> by_device = before;
  cpu::CpuDevice(1).run(Scale{tensor_of(by_device), factor});

  std::vector<T> last;
  test::for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
    std::vector<T> values = before;

    compute(threads, Scale{tensor_of(values), factor}, options);

    EXPECT_TRUE(have_same_bytes(values, by_device));
    last = values;
  });

  std::size_t wrong = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double product = number_of(before[i]) * static_cast<double>(static_cast<float>(factor));
    const double expected = rounded(rounded(product, format_of<float>()), format_of<T>());
    wrong += is_same(number_of(last[i]), expected) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(HostElementwiseTest, ScaleMultipliesInFp32AndRoundsForEveryTeamAndInstructionSet) {
  for_types([]<class T>(std::type_identity<T>) {
    for (const std::int64_t count : kCounts) expect_scale<T>(count, 1.0 / 3);
  });
}

/// Calls run(threads, options, out) for tensors with an element on either side, which must stay as
/// it was, and holds the others to `expected`.
template <class T, class Run>
void expect_inside(const std::vector<T>& expected, Run run) {
  const T outside = from_float<T>(7);
  std::vector<T> before(expected.size() + 2, outside);
  std::vector<T> after = before;
  std::copy(expected.begin(), expected.end(), after.begin() + 1);
  test::for_teams_and_instructions([&](Threads& threads, const PassOptions& options) {
    std::vector<T> values = before;

    run(threads, options, tensor_of(values).slice(1, static_cast<std::int64_t>(expected.size())));

    EXPECT_TRUE(have_same_bytes(values, after));
  });
}

TEST(HostElementwiseTest, CopiesAndFillsWriteEveryElementAndNoOther) {
  for_types([]<class T>(std::type_identity<T>) {
    for (const std::int64_t count : kCounts) {
      SCOPED_TRACE(testing::Message() << name_of(dtype_of<T>()) << ", " << count << " elements");
      std::vector<T> in = as_type<T>(numbers(count, -3, 3, 3));
      expect_inside(in, [&](Threads& threads, const PassOptions& options, Tensor out) {
        compute(threads, Copy{tensor_of(in), out}, options);
      });
      expect_inside(std::vector<T>(in.size(), from_float<T>(0)),
                    [](Threads& threads, const PassOptions& options, Tensor out) {
                      compute(threads, FillZero{out}, options);
                    });
      expect_inside(std::vector<T>(in.size(), from_float<T>(0.3F)),
                    [](Threads& threads, const PassOptions& options, Tensor out) {
                      compute(threads, FillConstant{out, 0.3}, options);
                    });
    }
  });
}

TEST(HostElementwiseTest, BytesAreCopiedAndFilledButThereIsNoArithmeticOnThem) {
  Threads threads(2);
  std::vector<std::int8_t> in(100, 3);
  std::vector<std::int8_t> out(100, 1);
  const Tensor from{in.data(), 100, DType::int8};
  const Tensor to{out.data(), 100, DType::int8};

  compute(threads, Cast{from, to});
  EXPECT_EQ(out, in);
  compute(threads, FillZero{to});
  EXPECT_EQ(out, std::vector<std::int8_t>(100, 0));
  compute(threads, FillConstant{{out.data(), 100, DType::uint8}, 5});
  EXPECT_EQ(out, std::vector<std::int8_t>(100, 5));
  EXPECT_THROW(compute(threads, Scale{to, 2}), std::invalid_argument);
  EXPECT_THROW(compute(threads, Cast{from.slice(0, 25), {out.data(), 25, DType::fp32}}),
               std::invalid_argument);
}

TEST(HostElementwiseTest, ACopyToItselfIsNone) {
  Threads threads(1);
  std::vector<float> values = numbers(100, -1, 1, 4);
  int ticks = 0;

  compute(threads, Copy{tensor_of(values), tensor_of(values)}, {.tick = [&] { ++ticks; }});

  EXPECT_EQ(ticks, 0);
  EXPECT_EQ(values, numbers(100, -1, 1, 4));
}

TEST(HostElementwiseTest, EveryLongPassTicks) {
  constexpr std::int64_t kCount = std::int64_t{3} << 20U;
  Threads threads(1);
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  int ticks = 0;
  const auto ticks_of = [&](const auto& operation) {
    ticks = 0;
    compute(threads, operation, {.tick = [&] { ++ticks; }});
    return ticks;
  };

  EXPECT_EQ(ticks_of(Scale{tensor_of(a), 0.5}), 3);
  EXPECT_EQ(ticks_of(Copy{tensor_of(a), tensor_of(b)}), 3);
  EXPECT_EQ(ticks_of(Cast{tensor_of(a), {b.data(), kCount, DType::bf16}}), 3);
  EXPECT_EQ(ticks_of(FillZero{tensor_of(a)}), 2);
  EXPECT_EQ(ticks_of(FillConstant{tensor_of(a), 1}), 2);
}

}  // namespace

}  // namespace dstune::host::elementwise_test
