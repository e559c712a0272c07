#include "kernels/cpu/products/product_libraries.hpp"

#include <array>
#include <exception>
#include <vector>

#include <dlfcn.h>

#include "core/base/text.hpp"
#include "kernels/cpu/products/choose_products.hpp"
#include "kernels/cpu/products/onednn.hpp"

namespace dstune::cpu {

namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// "OpenBLAS 0.3.21 DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64": name and version.
std::string openblas() {
  auto* const config = find<char*()>("openblas_get_config");
  if (config == nullptr) return "";
  const auto words = split(config(), ' ');
  auto* const core = find<char*()>("openblas_get_corename");
  return concat(words.at(0), words.size() > 1 ? concat(" ", words[1]) : "",
                core == nullptr ? "" : concat(" (", core(), ")"));
}

std::string mkl() {
  auto* const version = find<void(char*, int)>("mkl_get_version_string");
  if (version == nullptr) return "";
  std::array<char, 256> text{};
  version(text.data(), static_cast<int>(text.size()) - 1);
  return std::string(trim(text.data()));
}

std::string blis() {
  auto* const version = find<const char*()>("bli_info_get_version_str");
  return version == nullptr ? "" : concat("BLIS ", version());
}

// What a wrong variable means is said where products are chosen.
bool may_use_onednn() {
  try {
    return Onednn::is_there() && read_product_choice() != ProductChoice::blas;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::string product_libraries() {
  std::string name = "a BLAS of unknown name";
  for (const auto& known : {mkl(), openblas(), blis()}) {
    if (known.empty()) continue;
    name = known;
    break;
  }
  return may_use_onednn() ? concat(name, ", oneDNN ", Onednn::version()) : name;
}

}  // namespace dstune::cpu
