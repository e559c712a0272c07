// The highest rates of a device, measured on the device itself.
#pragma once

#include <optional>
#include <vector>

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"
#include "core/device/dtype.hpp"

namespace dstune {

class Device;

/// Rates of large operands, measured for a few milliseconds; those of the product have normal
/// values.
struct DevicePeaks {
  double gemm_flops_per_s = 0;  ///< a square matrix product in the type of the step
  double copy_bytes_per_s = 0;  ///< a copy; bytes are those read and those written

  bool operator==(const DevicePeaks&) const = default;
};

/// Times products and copies of growing size on the compute stream, until one takes a millisecond
/// or `memory` is too small for the next. The results are medians.
/// @param device  must have nothing queued
/// @param memory  of the device, `size` bytes, which may be overwritten; 400 MB are enough for any
/// device
/// @returns none if even the smallest product does not fit, or if the device has no time
std::optional<DevicePeaks> measure_peaks(Device& device, DType dtype, void* memory, Bytes size);

/// The lowest peaks among the ranks of a group; none if a rank has none.
std::optional<DevicePeaks> merge(const std::vector<std::optional<DevicePeaks>>& ranks);

/// {"gemm_flops_per_s": 6.1e14, "copy_bytes_per_s": 2.9e12}
json::object to_json(const DevicePeaks& peaks);
/// Inverse of to_json, exact.
/// @throws std::exception  if `object` is none
DevicePeaks device_peaks_from_json(const json::object& object);

}  // namespace dstune
