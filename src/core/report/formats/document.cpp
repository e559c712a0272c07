#include "core/report/formats/document.hpp"

#include <cstddef>

namespace dstune {

std::string format_as_table(const Document& document) { return document.text(); }

std::string format_as_json(const Document& document) { return document.json(); }

std::string format_as(TableFormat format, const Document& document) {
  using Format = std::string (*)(const Document&);
#define DSTUNE_FORMAT(name, ...) format_as_##name,
  constexpr Format kFormats[] = {DSTUNE_TABLE_FORMATS(DSTUNE_FORMAT)};
#undef DSTUNE_FORMAT
  return kFormats[static_cast<std::size_t>(format)](document);
}

}  // namespace dstune
