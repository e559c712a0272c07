// The suite every Device must pass: the fixture, and what the tests share. Expected values are
// computed in double by plain loops; inputs are rounded to the storage type before that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/device.hpp"

namespace dstune::testing {

/// One device under test.
struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>(Bytes memory_limit)> make;
  std::function<void(const void* host, void* device, std::size_t size)> upload;
  std::function<void(const void* device, void* host, std::size_t size)> download;
  /// Libraries and nvcc compute, which round where nobody here decides.
  bool is_real_gpu = false;
};

inline void PrintTo(const DeviceCase& device, std::ostream* out) { *out << device.name; }

/// Those of this program, which links one definition of it (*_cases.cpp).
std::vector<DeviceCase> device_cases();

/// Lengths on both sides of vector widths and blocks.
inline const std::vector<std::int64_t> kLengths = {1,  7,  8,   16,   17,   63,
                                                   64, 65, 129, 1030, 4096, 20011};
inline const std::vector<DType> kDTypes = {DType::fp32, DType::bf16, DType::fp16};

class DeviceTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  DeviceTest() : device_(GetParam().make(Bytes{1} << 30U)) {}

  Device& device() { return *device_; }

  Buffer buffer(std::int64_t numel, DType dtype = DType::fp32);
  Buffer upload(const std::vector<double>& values, DType dtype = DType::fp32);
  Buffer upload_indices(const std::vector<std::int64_t>& values);
  std::vector<double> download(Tensor tensor);
  std::vector<std::uint8_t> download_bytes(const void* data, std::size_t size);
  std::vector<std::int64_t> download_indices(const Buffer& buffer);

 private:
  std::unique_ptr<Device> device_;
};

/// Uniform in [-1, 1], rounded to `dtype`; the same for the same seed.
std::vector<double> random_values(std::int64_t count, DType dtype, unsigned seed);
double rounded(double value, DType dtype);

/// What rounding to `dtype`, and a few roundings of fp32 arithmetic, may change, relative.
double tolerance_of(DType dtype);
/// |actual - expected| <= tolerance * max(largest |expected|, least).
/// @param least  where what is expected is a difference of larger numbers
void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                  double tolerance, double least = 0);

/// Central differences of f at x.
std::vector<double> numeric_gradient(const std::function<double(const std::vector<double>&)>& f,
                                     std::vector<double> x);

double dot(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace dstune::testing
