#include "core/input/read_json.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include "core/base/text.hpp"
#include "core/input/checked_json_handler.hpp"
#include "core/input/json_fault.hpp"
#include "core/input/read_text.hpp"

namespace dstune {

namespace {

void add_file_problem(Problems& problems, std::string what) {
  problems.add("file", std::move(what));
}

// True for a UTF-16 byte order mark, or for a first letter with a zero byte beside it.
bool is_utf16(std::string_view text) {
  const auto first = text.substr(0, 2);
  if (first == "\xFF\xFE" || first == "\xFE\xFF") return true;
  return first.size() == 2 && (first[0] == '\0') != (first[1] == '\0');
}

}  // namespace

std::optional<json::value> parse_config_json(std::string_view text, std::string_view pointer,
                                             Problems& problems, const JsonLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  if (is_utf16(text)) {
    add_file_problem(problems, "is UTF-16; save it as UTF-8");
    return std::nullopt;
  }
  if (trim(text).empty()) {
    add_file_problem(problems, "is empty; accepted: a JSON object");
    return std::nullopt;
  }
  json::parse_options options;
  options.max_depth = limits.max_depth;
  options.allow_comments = true;
  options.allow_trailing_commas = true;
  json::basic_parser<CheckedJsonHandler> parser(options, pointer, problems);
  json::error_code fault;
  std::size_t offset = parser.write_some(false, text.data(), text.size(), fault);
  if (!fault && offset < text.size()) fault = json::error::extra_data;
  if (!fault) return parser.handler().take();
  auto problem =
      describe_json_fault(text, offset, fault, limits.max_depth, parser.handler().place());
  problems.add(std::move(problem.where), std::move(problem.what));
  return std::nullopt;
}

std::optional<json::value> read_json_file(const std::filesystem::path& path,
                                          std::string_view pointer, Problems& problems,
                                          const JsonLimits& limits) {
  const auto text = read_text_file(path, limits.max_bytes, problems);
  if (!text) return std::nullopt;
  return parse_config_json(*text, pointer, problems, limits);
}

}  // namespace dstune
