#include "core/device/rates/device_peaks.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/json.hpp"
#include "core/device/device.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/random.hpp"
#include "core/device/rates/timing.hpp"

namespace dstune {
namespace {

constexpr std::int64_t kSmallest = 64;  // rows of a matrix; a power of two, as the next sizes are
constexpr std::int64_t kLargestProduct = 8192;
constexpr Seconds kLongEnough = 1e-3;  // launches and the ramps at both ends are small beside it
constexpr Bytes kSmallestCopy = Bytes{1} << 20U;

double gemm_peak(Device& device, Tensor space) {
  const auto product = [&](std::int64_t n) {
    const auto matrix = [&](std::int64_t place) {
      return as_matrix(space.slice(place * n * n, n * n), n, n);
    };
    return Gemm{.a = matrix(0), .b = matrix(1), .c = matrix(2)};
  };
  for (std::int64_t n = kSmallest;; n *= 2) {
    const Gemm gemm = product(n);
    // A GPU multiplies zeros faster than numbers, since its power decides its clock.
    device.run(FillNormal{.out = space.slice(0, 2 * n * n), .seed = 1, .first_index = 0});
    const auto run = [&] { device.run(gemm); };
    run();  // the library chooses an algorithm, and takes the memory that it needs
    const Seconds time = time_of_call(device, 1, run);
    const bool is_last = n == kLargestProduct || std::int64_t{12} * n * n > space.numel;
    if (time >= kLongEnough || is_last) {
      return work_of(gemm).flops / median_time_of_call(device, time, run);
    }
  }
}

double copy_peak(Device& device, Tensor space) {
  const std::int64_t half = space.numel / 2;
  std::int64_t count = static_cast<std::int64_t>(kSmallestCopy / size_of(space.dtype));
  for (;; count *= 2) {
    count = std::min(count, half);
    const Copy copy{space.slice(0, count), space.slice(half, count)};
    const auto run = [&] { device.run(copy); };
    run();
    const Seconds time = time_of_call(device, 1, run);
    if (time >= kLongEnough || count == half) {
      const Work work = work_of(copy);
      const auto bytes = static_cast<double>(work.read_bytes() + work.written_bytes());
      return bytes / median_time_of_call(device, time, run);
    }
  }
}

}  // namespace

std::optional<DevicePeaks> measure_peaks(Device& device, DType dtype, void* memory, Bytes size) {
  const std::int64_t most = 3 * kLargestProduct * kLargestProduct;
  const auto fitting = static_cast<std::int64_t>(size / size_of(dtype));
  const Tensor space{memory, std::min(most, fitting), dtype};
  if (space.numel < 3 * kSmallest * kSmallest) return std::nullopt;
  const DevicePeaks peaks{.gemm_flops_per_s = gemm_peak(device, space),
                          .copy_bytes_per_s = copy_peak(device, space)};
  const bool has_time = std::isfinite(peaks.gemm_flops_per_s + peaks.copy_bytes_per_s);
  return has_time ? std::optional(peaks) : std::nullopt;
}

std::optional<DevicePeaks> merge(const std::vector<std::optional<DevicePeaks>>& ranks) {
  std::optional<DevicePeaks> lowest;
  for (const auto& rank : ranks) {
    if (!rank) return std::nullopt;
    if (!lowest) lowest = rank;
    lowest->gemm_flops_per_s = std::min(lowest->gemm_flops_per_s, rank->gemm_flops_per_s);
    lowest->copy_bytes_per_s = std::min(lowest->copy_bytes_per_s, rank->copy_bytes_per_s);
  }
  return lowest;
}

json::object to_json(const DevicePeaks& peaks) {
  return {{"gemm_flops_per_s", peaks.gemm_flops_per_s},
          {"copy_bytes_per_s", peaks.copy_bytes_per_s}};
}

DevicePeaks device_peaks_from_json(const json::object& object) {
  return {.gemm_flops_per_s = object.at("gemm_flops_per_s").to_number<double>(),
          .copy_bytes_per_s = object.at("copy_bytes_per_s").to_number<double>()};
}

}  // namespace dstune
