#include "tests/kernels/device/device_test.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace dstune::testing {

Buffer DeviceTest::buffer(std::int64_t numel, DType dtype) {
  return make_buffer(device(), MemoryCategory::temporaries, numel, dtype);
}

Buffer DeviceTest::upload(const std::vector<double>& values, DType dtype) {
  Buffer result = buffer(static_cast<std::int64_t>(values.size()), dtype);
  const std::vector<float> floats(values.begin(), values.end());
  device().write(floats, result.tensor(dtype));
  return result;
}

Buffer DeviceTest::upload_indices(const std::vector<std::int64_t>& values) {
  Buffer result(device(), MemoryCategory::temporaries, values.size() * sizeof(std::int64_t));
  GetParam().upload(values.data(), result.data(), result.size());
  return result;
}

std::vector<double> DeviceTest::download(Tensor tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.numel));
  device().read(tensor, values);
  return {values.begin(), values.end()};
}

std::vector<std::uint8_t> DeviceTest::download_bytes(const void* data, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  device().synchronize();
  GetParam().download(data, bytes.data(), size);
  return bytes;
}

std::vector<std::int64_t> DeviceTest::download_indices(const Buffer& from) {
  std::vector<std::int64_t> values(from.size() / sizeof(std::int64_t));
  device().synchronize();
  GetParam().download(from.data(), values.data(), from.size());
  return values;
}

std::vector<double> random_values(std::int64_t count, DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values(static_cast<std::size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return rounded(uniform(generator), dtype); });
  return values;
}

double rounded(double value, DType dtype) {
  const auto single = static_cast<float>(value);
  if (dtype == DType::bf16) return static_cast<double>(to_float(from_float<BFloat16>(single)));
  if (dtype == DType::fp16) return static_cast<double>(to_float(from_float<Float16>(single)));
  return static_cast<double>(single);
}

double tolerance_of(DType dtype) {
  return dtype == DType::fp32 ? 4e-6 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11 + 4e-6;
}

void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                  double tolerance, double least) {
  ASSERT_EQ(actual.size(), expected.size());
  double largest = least;
  for (const double value : expected) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << "at element " << i;
  }
}

std::vector<double> numeric_gradient(const std::function<double(const std::vector<double>&)>& f,
                                     std::vector<double> x) {
  constexpr double kStep = 1e-5;
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    x[i] = value + kStep;
    const double above = f(x);
    x[i] = value - kStep;
    const double below = f(x);
    x[i] = value;
    gradient[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace dstune::testing
