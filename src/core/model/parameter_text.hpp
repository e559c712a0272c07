// Numbers of parameters as people say them.
#pragma once

#include <cstdint>
#include <string>

namespace dstune {

/// A count in three digits, "7.64 B", "20.2 M", "648": billions (B), millions (M), thousands (k).
/// @param count  not negative
std::string format_count(std::int64_t count);

/// The size of a model, "124 M parameters", and where some are frozen how many are trained: "7.64 B
/// parameters, 20.2 M trained".
std::string parameter_text(std::int64_t all, std::int64_t trained);

}  // namespace dstune
