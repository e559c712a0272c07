// Whether the BLAS or oneDNN multiplies matrices on this machine.
#pragma once

#include "kernels/cpu/products/products.hpp"

namespace dstune::cpu {

enum class ProductChoice { blas, onednn, automatic };

/// What the environment's DSTUNE_CPU_PRODUCTS says: "blas", "onednn" or "auto", also if it is
/// unset.
/// @throws ConfigError  if it says something else, or asks for a oneDNN that this build lacks
ProductChoice read_product_choice();

/// The types that `choice` leaves to oneDNN with so many threads, of the BLAS too. Automatic: those
/// in which it is clearly the faster one, by products of some milliseconds.
OnednnTypes choose_products(ProductChoice choice, int threads);

}  // namespace dstune::cpu
