// What is printed on stdout, in any of the formats of --format.
#pragma once

#include <functional>
#include <string>

#include "core/config/command_line/output_forms.hpp"

namespace dstune {

/// A result; a format has made of it only what it prints.
struct Document {
  std::function<std::string()> text;  ///< as people read it
  std::function<std::string()> json;  ///< the same as JSON, with a line end
};

/// `document` as --format NAME prints it, for each format of output_forms.hpp.
#define DSTUNE_DECLARE_FORMAT(name, ...) std::string format_as_##name(const Document& document);
DSTUNE_TABLE_FORMATS(DSTUNE_DECLARE_FORMAT)
#undef DSTUNE_DECLARE_FORMAT

std::string format_as(TableFormat format, const Document& document);

}  // namespace dstune
