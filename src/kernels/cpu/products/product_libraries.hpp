// Which libraries multiply here, for the record.
#pragma once

#include <string>

namespace dstune::cpu {

/// "OpenBLAS 0.3.21 (Haswell), oneDNN 2.6.3"; "a BLAS of unknown name" where it does not say.
/// The names leave out oneDNN where the environment does (choose_products.hpp).
std::string product_libraries();

}  // namespace dstune::cpu
