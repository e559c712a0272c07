// Whether the BLAS or oneDNN multiplies matrices on this machine.
#pragma once

#include <string>

#include "kernels/cpu/products/products.hpp"

namespace dstune::cpu {

enum class ProductChoice { blas, onednn, automatic };

/// What the environment's DSTUNE_CPU_PRODUCTS says: "blas", "onednn" or "auto", also if it is
/// unset.
/// @throws ConfigError  if it says something else, or asks for a oneDNN that this build lacks
ProductChoice read_product_choice();

enum class ProcessorMaker { amd, other };

ProcessorMaker maker_of_processor();

/// The types that `choice` leaves to oneDNN with so many threads, of the BLAS too. Automatic: those
/// in which it is clearly the faster one, by products of some milliseconds, but on AMD's processors
/// never fp32: torch multiplies that with MKL, which uses half of their vectors there.
OnednnTypes choose_products(ProductChoice choice, int threads,
                            ProcessorMaker maker = maker_of_processor());

/// What is not like torch in products of fp32, chosen so; "" if nothing is known.
std::string fp32_caveat(ProductChoice choice, ProcessorMaker maker);

}  // namespace dstune::cpu
