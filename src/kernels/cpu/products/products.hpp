// Who multiplies matrices: the BLAS or oneDNN, as chosen for each type.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <tuple>

#include "core/device/host_overhead.hpp"
#include "kernels/cpu/products/blas.hpp"

namespace dstune::cpu {

class Onednn;

/// The types that oneDNN multiplies; the BLAS has the others, 16 bits converted to fp32.
struct OnednnTypes {
  bool fp32 = false;
  bool bf16 = false;

  auto operator<=>(const OnednnTypes&) const =
      default;  // NOLINT(modernize-use-nullptr): a false alarm
};

/// What the training's library takes more than these products do.
struct ProductPace {
  double slowness = 1;  ///< so many times as long, at least 1
  Seconds latency = 0;  ///< and so much for each product, at least 0

  bool is_equal() const { return slowness <= 1 && latency <= 0; }
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

  /// How the training's library, which has `rate`, compares with these by ProductTrials; equal
  /// where its threads are others. The first call for a type, and for who multiplies it, measures,
  /// which takes some tens of milliseconds.
  ProductPace pace_of(const ProductRate& rate);

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
  struct Own {
    double flops_per_s = 0;
    Seconds latency = 0;  ///< beyond that of fp32
  };
  /// What was measured: ranks that choose and vote go back and forth between the same types.
  std::map<std::tuple<DType, OnednnTypes, int>, Own> own_;
};

}  // namespace dstune::cpu
