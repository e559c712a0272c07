// One number on a device.
#pragma once

#include "core/device/device.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// A norm, a loss or a flag: one element, which stays on the device until Device::read_scalar().
/// Its few bytes are not counted.
class Scalar {
 public:
  explicit Scalar(Device& device, DType dtype = DType::fp32)
      : device_(device),
        tensor_{device.do_allocate(MemoryCategory::temporaries, size_of(dtype)), 1, dtype} {}
  ~Scalar() { device_.do_free(tensor_.data, tensor_.size()); }
  Scalar(const Scalar&) = delete;
  Scalar& operator=(const Scalar&) = delete;

  Tensor tensor() const { return tensor_; }
  void set_zero() const { device_.run(FillZero{tensor_}); }

 private:
  Device& device_;
  Tensor tensor_;
};

}  // namespace dstune
