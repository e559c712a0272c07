// The device's number types and matrices on the host: bit for bit what core/device/dtype.hpp says.
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <mma.h>

#include "core/device/dtype.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace numbers_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

/// Floats of all sizes and signs, among them ties, subnormals and what overflows; no NaN.
std::vector<float> many_floats() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32U); bits += 40'961) {
    for (const std::uint32_t low : {0U, 0x1000U, 0x8000U, 0x18000U}) {
      const auto value =
          std::bit_cast<float>((static_cast<std::uint32_t>(bits) & 0xffff0000U) | low);
      const auto other = std::bit_cast<float>(static_cast<std::uint32_t>(bits) ^ low);
      if (!std::isnan(value)) values.push_back(value);
      if (!std::isnan(other)) values.push_back(other);
    }
  }
  return values;
}

TEST(Numbers, a_float_is_rounded_to_16_bits_as_the_cpu_backend_rounds) {
  for (const float value : many_floats()) {
    ASSERT_EQ(__bfloat16_as_ushort(__float2bfloat16(value)),
              dstune::from_float<dstune::BFloat16>(value).bits)
        << value;
    ASSERT_EQ(__half_as_ushort(__float2half(value)),
              dstune::from_float<dstune::Float16>(value).bits)
        << value;
  }
}

TEST(Numbers, every_16_bit_pattern_becomes_the_float_it_stands_for) {
  for (unsigned bits = 0; bits <= 0xffffU; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const float brain = __bfloat162float(__ushort_as_bfloat16(pattern));
    const float half = __half2float(__ushort_as_half(pattern));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(brain),
              std::bit_cast<std::uint32_t>(to_float(dstune::BFloat16{pattern})));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(half),
              std::bit_cast<std::uint32_t>(to_float(dstune::Float16{pattern})));
  }
}

TEST(Numbers, not_a_number_stays_so_with_the_devices_pattern) {
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(std::nanf(""))), 0x7fffU);
  EXPECT_EQ(__half_as_ushort(__float2half(-std::nanf(""))), 0x7fffU);
}

TEST(Numbers, a_double_is_rounded_once) {
  const double above_the_tie = 1.0 + 0x1p-8 + 0x1p-40;  // as a float it is the tie, which goes down
  EXPECT_EQ(float{__double2bfloat16(above_the_tie)}, 1.0F + 0x1p-7F);
  EXPECT_EQ(float{__double2bfloat16(-(1.0 + 0x1p-8 - 0x1p-40))}, -1.0F);
}

template <class T, class LayoutA, class LayoutB>
__global__ void multiply(const T* a, const T* b, float* d) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0F);
  wmma::load_matrix_sync(left, a, 24);
  wmma::load_matrix_sync(right, b, 24);
  wmma::mma_sync(sum, left, right, sum);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0F;
  wmma::store_matrix_sync(d, sum, 24, wmma::mem_row_major);
}

/// Twice the product and one, by plain loops, of 16 x 16 matrices in rows or columns of 24.
template <class T>
std::vector<float> expected(const std::vector<T>& a, const std::vector<T>& b, bool rows_a,
                            bool rows_b) {
  std::vector<float> result(std::size_t{24} * 16);
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 16; ++column) {
      float sum = 1.0F;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += float{a[rows_a ? row * 24 + k : k * 24 + row]} *
               float{b[rows_b ? k * 24 + column : column * 24 + k]};
      }
      result[row * 24 + column] = 2.0F * sum;
    }
  }
  return result;
}

template <class T, class LayoutA, class LayoutB>
void expect_product(bool rows_a, bool rows_b) {
  std::vector<T> a(std::size_t{24} * 16);
  std::vector<T> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = T(static_cast<float>(i % 7) - 3.0F);
    b[i] = T(static_cast<float>(i % 5) * 0.5F);
  }
  const TestStream stream;
  const DeviceArray<T> device_a(a);
  const DeviceArray<T> device_b(b);
  const DeviceArray<float> d(a.size());

  stream.launch(1, 32, multiply<T, LayoutA, LayoutB>, device_a.data(), device_b.data(), d.data());

  stream.synchronise();
  EXPECT_EQ(d.values(), expected(a, b, rows_a, rows_b));
}

TEST(Numbers, a_warp_multiplies_matrices_of_both_types_and_layouts) {
  using nvcuda::wmma::col_major;
  using nvcuda::wmma::row_major;
  expect_product<__nv_bfloat16, row_major, row_major>(true, true);
  expect_product<__nv_bfloat16, row_major, col_major>(true, false);
  expect_product<__half, col_major, row_major>(false, true);
  expect_product<__half, col_major, col_major>(false, false);
}

}  // namespace
}  // namespace numbers_test
