// Who multiplies matrices: the BLAS or oneDNN, as chosen for each type.
#pragma once

#include <memory>

#include "kernels/cpu/products/blas.hpp"

namespace dstune::cpu {

class Onednn;

/// The types that oneDNN multiplies; the BLAS has the others, 16 bits converted to fp32.
struct OnednnTypes {
  bool fp32 = false;
  bool bf16 = false;

  bool operator==(const OnednnTypes&) const = default;
};

class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// oneDNN multiplies these types from now on; until then the BLAS has all.
  /// @param threads  of oneDNN; the BLAS's are the process's (set_blas_threads)
  /// @throws std::logic_error  if this build has no oneDNN, and `types` asks for it
  void use_onednn(OnednnTypes types, int threads);
  OnednnTypes onednn_types() const { return types_; }

  int threads() const { return threads_; }

  void sgemm(const Product& product, Panel a, Panel b, Panel c) const;

  bool multiplies_bf16() const { return types_.bf16; }
  /// To be called only where oneDNN multiplies anything.
  Onednn& onednn() const { return *onednn_; }

  /// Gives back what oneDNN keeps.
  void trim();

 private:
  OnednnTypes types_;
  int threads_ = 0;
  std::unique_ptr<Onednn> onednn_;
};

}  // namespace dstune::cpu
