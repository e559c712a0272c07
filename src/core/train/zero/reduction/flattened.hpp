// Several tensors as one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// PyTorch's flatten of a list of tensors of one type: a single tensor is a view of itself; several
/// are copied one after the other into a temporary.
class Flattened {
 public:
  /// @param parts  at least one
  Flattened(Device& device, std::vector<Tensor> parts);

  Tensor tensor() const { return tensor_; }
  std::int64_t offset(std::size_t i) const { return offsets_[i]; }  ///< of part i
  /// Copies values back into part i; does nothing for a view.
  void copy_back(std::size_t i) const;
  void copy_back() const;

 private:
  Device& device_;
  std::vector<Tensor> parts_;
  std::vector<std::int64_t> offsets_;
  Buffer copy_;
  Tensor tensor_;
};

}  // namespace dstune
