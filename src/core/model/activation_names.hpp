// Activation functions by their names in config.json files: transformers' ACT2FN.
#pragma once

#include <string_view>

namespace dstune {

/// The names that are modelled, as a KeyRule takes them.
inline constexpr std::string_view kActivationNames =
    "gelu|gelu_accurate|gelu_fast|gelu_new|gelu_pytorch_tanh|quick_gelu|relu|sigmoid|silu|swish|"
    "tanh";

/// Ends the message about any other.
inline constexpr std::string_view kOtherActivations =
    "; others keep other tensors for the backward pass, and are not modelled";

/// The class of its module, as of transformers 5.23: "GELUActivation".
/// @throws std::invalid_argument  if it is none of kActivationNames
std::string_view activation_class(std::string_view name);

}  // namespace dstune
