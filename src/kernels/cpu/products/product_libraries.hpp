// Which libraries multiply here, for the record.
#pragma once

#include <string>

namespace dstune::cpu {

/// "OpenBLAS 0.3.21 (Haswell), oneDNN 2.6.3"; "a BLAS of unknown name" where it does not say.
/// Without oneDNN where the environment leaves it out (choose_products.hpp).
std::string product_libraries();

}  // namespace dstune::cpu
