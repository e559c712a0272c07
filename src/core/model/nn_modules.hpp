// Modules of torch.nn, as several families have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"

namespace dstune {

/// torch.nn.Linear: a weight (outputs, inputs) and, if it has one, a bias of zeros.
/// @returns its module
std::size_t add_nn_linear(ModelBuilder& builder, std::string name, std::size_t parent,
                          std::int64_t inputs, std::int64_t outputs, bool has_bias, double stddev);

}  // namespace dstune
