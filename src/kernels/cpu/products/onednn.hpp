// Matrix products by oneDNN, which is what PyTorch multiplies 16-bit matrices with on CPUs.
#pragma once

#include <memory>
#include <string>

#include "core/device/operations/gemm.hpp"
#include "kernels/cpu/products/blas.hpp"

namespace dstune::cpu {

/// One thread at a time may use it. What it keeps (kernels for the shapes that it saw last, and
/// scratch) goes with trim().
///
/// Every call may throw std::bad_alloc, and Error where the library refuses.
class Onednn {
 public:
  /// False in a build without it, where nothing else may be called.
  static bool is_there();
  /// "2.6.3"
  static std::string version();
  /// False where the processor has no instructions that it could do it with.
  static bool multiplies_bf16();

  /// @param threads  that a product may take
  explicit Onednn(int threads);
  ~Onednn();
  Onednn(const Onednn&) = delete;
  Onednn& operator=(const Onednn&) = delete;

  void sgemm(const Product& product, Panel a, Panel b, Panel c);

  /// A single product of bf16 matrices, summed in fp32.
  void multiply(const Gemm& op);

  void trim();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dstune::cpu
