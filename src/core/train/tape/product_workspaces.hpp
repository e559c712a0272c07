// The workspaces that stay with PyTorch's threads from their first matrix products on.
#pragma once

#include <array>
#include <cstddef>

#include "core/device/device.hpp"
#include "core/device/product_workspace.hpp"

namespace dstune {

/// PyTorch multiplies on two threads: the trainer's, and that on which autograd runs backward, and
/// checkpoints their second forward.
enum class ProductThread { forward, backward };

/// Holds, for as long as the model lives, what torch's allocator gave to cuBLAS and cuBLASLt. Our
/// own products take none of it.
class ProductWorkspaces {
 public:
  /// @param size  of a thread; with none nothing is held. `device` must outlive this
  ProductWorkspaces(Device& device, const ProductWorkspace& size) : device_(&device), size_(size) {}

  /// Called before a product. @throws OutOfMemoryError
  void multiply(ProductThread thread, bool adds_bias) {
    Held& held = threads_[static_cast<std::size_t>(thread)];
    take(held.of_products, size_.of_products);
    if (adds_bias) take(held.of_biases, size_.of_biases);
  }

 private:
  struct Held {
    Buffer of_products;
    Buffer of_biases;
  };

  void take(Buffer& workspace, Bytes size) {
    if (size > 0 && !workspace) workspace = {*device_, MemoryCategory::temporaries, size};
  }

  Device* device_;
  ProductWorkspace size_;
  std::array<Held, 2> threads_;
};

}  // namespace dstune
