// Numbers that the model decides: "0.9*h*h".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/json.hpp"
#include "core/input/key_rules.hpp"

namespace dstune {

/// The product that `text` is, of numbers and of h, the model's hidden size: "h*h", "10*h". Nothing
/// if it is none.
std::optional<double> evaluate(std::string_view text, std::int64_t hidden_size);

/// `number` as an integer: the nearest one if that differs only by rounding, else without its
/// fraction, as Hugging Face's int(0.9 * h * h). Nothing if it is beyond 2^53.
std::optional<std::int64_t> truncated(double number);

/// `value` with what the model decides in its place: products in keys that hold numbers, and "auto"
/// where Hugging Face resolves it. Everything else comes back as it is.
/// @param pointer  of the key in the DeepSpeed JSON
/// @param rule     of the key; null: none is known
json::value resolved(const json::value& value, std::string_view pointer, const KeyRule* rule,
                     std::int64_t hidden_size);

}  // namespace dstune
