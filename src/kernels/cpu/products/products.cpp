#include "kernels/cpu/products/products.hpp"

#include <algorithm>

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "kernels/cpu/products/product_trial.hpp"

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

ProductPace Products::pace_of(const ProductRate& rate) {
  constexpr int kTries = 40;  // a rate of a busy moment would make every wait too short
  if (rate.threads != threads_) return {};
  const auto [place, is_new] = own_.try_emplace({rate.dtype, types_, threads_});
  Own& own = place->second;
  if (is_new) {
    CpuDevice device(1);
    device.products().use_onednn(types_, threads_);
    own.flops_per_s = ProductTrial::kFlop / ProductTrial().time(device, rate.dtype, kTries);
    ProductTrial small(ProductTrial::kFewRows, ProductTrial::kSmallSize);
    own.latency = small.time(device, rate.dtype, kTries) - small.time(device, DType::fp32, kTries);
    log_debug(concat("matrix products of ", name_of(rate.dtype), ": ",
                     fixed(own.flops_per_s / 1e9, 1), " GFLOP/s and ", fixed(own.latency * 1e6, 1),
                     " us here, ", fixed(rate.flops_per_s / 1e9, 1), " and ",
                     fixed(rate.latency * 1e6, 1), " in the training"));
  }
  return {std::max(1.0, own.flops_per_s / rate.flops_per_s),
          std::max(0.0, rate.latency - std::max(0.0, own.latency))};
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
