#include "core/config/read_json.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include <boost/json/basic_parser_impl.hpp>

#include "core/base/text.hpp"
#include "core/base/unique_handle.hpp"
#include "core/base/units.hpp"
#include "core/config/checked_json_handler.hpp"

namespace dstune {

namespace {

struct CFile {
  using Handle = std::FILE*;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle file) noexcept { std::fclose(file); }
};

void add_file_problem(Problems& problems, std::string what) {
  problems.add("file", std::move(what));
}

std::string too_long(std::size_t max_bytes) {
  return concat("is longer than ", format_bytes(max_bytes), ": this is no configuration");
}

std::string place(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto line_start = before.rfind('\n');
  const auto column = line_start == std::string_view::npos ? offset + 1 : offset - line_start;
  return concat("line ", line, ", column ", column);
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '-' ||
         letter == '+' || letter == '.';
}

// The bare word around `offset`, whose first letter is then `offset`.
std::string_view word_at(std::string_view text, std::size_t& offset) {
  while (offset > 0 && is_word(text[offset - 1])) --offset;
  std::size_t end = offset;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(offset, end - offset);
}

std::string unexpected_word(std::string_view word) {
  constexpr std::string_view kNumbers[] = {"NaN",  "nan",  "Infinity", "-Infinity",
                                           "-NaN", "-nan", "inf",      "-inf"};
  if (std::find(std::begin(kNumbers), std::end(kNumbers), word) != std::end(kNumbers)) {
    return concat("has ", word, ", which is not JSON; accepted: finite numbers");
  }
  if (word == "True" || word == "False" || word == "None") {
    return concat("has ", word, ", which is Python; JSON writes true, false, null");
  }
  return concat("has ", in_quotes(word), " where JSON does not allow it");
}

std::string unexpected(std::string_view text, std::size_t& offset) {
  if (offset >= text.size()) return "ends too early: a bracket or quote is still open";
  const char letter = text[offset];
  if (static_cast<unsigned char>(letter) >= 0x80U) {
    return "has bytes that are not UTF-8, or a character outside a string";
  }
  if (is_word(letter)) return unexpected_word(word_at(text, offset));
  if (letter == '\'') return "has a single quote; JSON strings stand in double quotes";
  if (letter == '\0') return "has a zero byte: this is no text file";
  return concat("has ", in_quotes(text.substr(offset, 1)), " where JSON does not allow it");
}

std::string syntax_fault(std::string_view text, std::size_t& offset, const json::error_code& fault,
                         const JsonLimits& limits) {
  if (fault == json::error::too_deep) {
    return concat("is nested deeper than ", limits.max_depth, " levels");
  }
  if (fault == json::error::extra_data) return "has more text after the end of the JSON value";
  if (fault == json::error::incomplete) {
    offset = text.size();
    return "ends too early: a bracket or quote is still open";
  }
  if (fault == json::error::syntax) return unexpected(text, offset);
  return concat("is not JSON: ", fault.message());
}

}  // namespace

std::optional<std::string> read_text_file(const std::filesystem::path& path, std::size_t max_bytes,
                                          Problems& problems) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    add_file_problem(problems, "is a directory");
    return std::nullopt;
  }
  const UniqueHandle<CFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    add_file_problem(problems, concat("cannot be read: ", std::strerror(errno)));
    return std::nullopt;
  }
  std::string text;
  constexpr std::size_t kChunk = std::size_t{1} << 16U;
  std::size_t count = kChunk;
  while (count == kChunk && text.size() <= max_bytes) {
    text.resize(text.size() + kChunk);
    count = std::fread(text.data() + text.size() - kChunk, 1, kChunk, file.get());
    text.resize(text.size() - kChunk + count);
  }
  if (std::ferror(file.get()) != 0) {
    add_file_problem(problems, concat("cannot be read: ", std::strerror(errno)));
    return std::nullopt;
  }
  if (text.size() > max_bytes) {
    add_file_problem(problems, too_long(max_bytes));
    return std::nullopt;
  }
  return text;
}

std::optional<json::value> parse_config_json(std::string_view text, std::string_view pointer,
                                             Problems& problems, const JsonLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
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
  const std::string what = syntax_fault(text, offset, fault, limits);
  problems.add(place(text, offset), what);
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
