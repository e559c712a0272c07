// communication_data_type: gradients travel in another element type than they have.
#pragma once

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The tensor that a collective is given in the place of `original`: the original itself if it has
/// the type of communication, otherwise a copy of it in that type (category temporaries). One pass
/// to make the copy, one to bring the result back, (e + e_c) bytes per element each.
class GradientMessage {
 public:
  GradientMessage(Device& device, Tensor original, DType dtype);

  Tensor tensor() const { return tensor_; }
  /// Brings the result back into the original; nothing where that was communicated itself.
  void write_back() const;

 private:
  Device& device_;
  Tensor original_;
  Buffer copy_;
  Tensor tensor_;
};

}  // namespace dstune
