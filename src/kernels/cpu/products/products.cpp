#include "kernels/cpu/products/products.hpp"

#include "kernels/cpu/products/onednn.hpp"

namespace dstune::cpu {

Products::Products() = default;
Products::~Products() = default;

void Products::use_onednn(OnednnTypes types, int threads) {
  const bool is_used = types.fp32 || types.bf16;
  if (!is_used) {
    onednn_.reset();
  } else if (!onednn_ || threads != threads_) {
    onednn_ = std::make_unique<Onednn>(threads);
  }
  types_ = types;
  threads_ = threads;
}

void Products::sgemm(const Product& product, Panel a, Panel b, Panel c) const {
  if (types_.fp32) {
    onednn_->sgemm(product, a, b, c);
  } else {
    cpu::sgemm(product, a, b, c);
  }
}

void Products::trim() {
  if (onednn_) onednn_->trim();
}

}  // namespace dstune::cpu
