#include "kernels/cpu/products/choose_products.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "kernels/cpu/products/product_trial.hpp"

namespace dstune::cpu {

namespace {

constexpr const char* kVariable = "DSTUNE_CPU_PRODUCTS";

/// True if the device's present products take clearly less time than `blas`: rounding of sums, and
/// with it a run's results, should not change for nothing.
bool is_clearly_faster(ProductTrial& trial, CpuDevice& device, DType dtype, Seconds blas) {
  constexpr double kClearly = 1.05;
  return trial.time(device, dtype) * kClearly < blas;
}

OnednnTypes measured_choice(int threads) {
  ProductTrial trial;
  CpuDevice device(1);
  const Seconds fp32 = trial.time(device, DType::fp32);
  const Seconds bf16 = trial.time(device, DType::bf16);
  device.products().use_onednn({.fp32 = true, .bf16 = Onednn::multiplies_bf16()}, threads);
  OnednnTypes types{.fp32 = is_clearly_faster(trial, device, DType::fp32, fp32)};
  if (device.products().multiplies_bf16()) {
    types.bf16 = is_clearly_faster(trial, device, DType::bf16, bf16);
  }
  return types;
}

}  // namespace

ProductChoice read_product_choice() {
  const char* const text = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const std::string_view name = text == nullptr ? "auto" : text;
  if (name == "blas") return ProductChoice::blas;
  if (name == "auto") return ProductChoice::automatic;
  if (name == "onednn" && Onednn::is_there()) return ProductChoice::onednn;
  const std::string found =
      name == "onednn" ? "is \"onednn\", which this build lacks" : concat("is \"", name, "\"");
  throw ConfigError(
      "environment",
      {{kVariable,
        concat(found, "; accepted: ", Onednn::is_there() ? "blas, onednn, auto" : "blas, auto")}});
}

ProcessorMaker maker_of_processor() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") ? ProcessorMaker::amd : ProcessorMaker::other;
#else
  return ProcessorMaker::other;
#endif
}

OnednnTypes choose_products(ProductChoice choice, int threads, ProcessorMaker maker) {
  if (choice == ProductChoice::blas || !Onednn::is_there()) return {};
  const bool is_users = choice == ProductChoice::onednn;
  OnednnTypes types = is_users ? OnednnTypes{.fp32 = true, .bf16 = Onednn::multiplies_bf16()}
                               : measured_choice(threads);
  if (!is_users && maker == ProcessorMaker::amd) types.fp32 = false;
  log_debug(concat("matrix products: fp32 by ", types.fp32 ? "oneDNN" : "the BLAS", ", bf16 ",
                   types.bf16 ? "by oneDNN" : "in fp32"));
  return types;
}

// bench/products_beside_torch.py on two of AMD's processors.
std::string fp32_caveat(ProductChoice choice, ProcessorMaker maker) {
  if (maker != ProcessorMaker::amd) return "";
  const bool is_onednn = choice == ProductChoice::onednn;
  return concat("on AMD's processors torch multiplies fp32 more slowly than this program: by ",
                is_onednn ? "oneDNN it took torch 1.13 to 2.3 times as long"
                          : "OpenBLAS 0.3.21 it took torch 1.15 times as long",
                ", so that steps in fp32 are too short");
}

}  // namespace dstune::cpu
