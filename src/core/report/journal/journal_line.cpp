#include "core/report/journal/journal_line.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <utility>

#include <boost/crc.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/object.hpp>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::string_view kSealBegin = R"(,"crc32":")";
constexpr std::string_view kSealEnd = R"("})";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kSealSize = kSealBegin.size() + kDigits + kSealEnd.size();

std::string checksum_of(std::string_view text) {
  boost::crc_32_type checksum;
  checksum.process_bytes(text.data(), text.size());
  std::array<char, kDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(checksum.checksum()));
  return digits.data();
}

bool has_seal(std::string_view line) {
  if (line.size() < kSealSize) return false;
  const std::string_view seal = line.substr(line.size() - kSealSize);
  return seal.starts_with(kSealBegin) && seal.ends_with(kSealEnd);
}

JournalLine damaged(std::string damage) { return {nullptr, false, std::move(damage)}; }

/// A value whose parts are released at once.
struct ParsedLine {
  explicit ParsedLine(std::string_view text)
      : memory(kMemoryPerLetter * text.size()), value(parse_json(text, &memory)) {}

  static constexpr std::size_t kMemoryPerLetter = 4;

  json::monotonic_resource memory;
  json::value value;
};

JournalLine parse(std::string_view line, bool sealed) {
  try {
    auto parsed = std::make_shared<const ParsedLine>(line);
    if (const auto* object = parsed->value.if_object()) {
      return {{std::move(parsed), object}, sealed, ""};
    }
  } catch (const std::exception&) {
    // where the parser stopped says nothing about what happened to the line
  }
  return damaged("it is not a JSON object");
}

}  // namespace

std::string seal_line(const json::object& content) {
  std::string line = to_json_text(content, 0);
  line.pop_back();  // the brace that closes the object
  const std::string checksum = checksum_of(line);
  return line.append(kSealBegin).append(checksum).append(kSealEnd);
}

JournalLine open_line(std::string_view line) {
  const auto zeros = std::count(line.begin(), line.end(), '\0');
  if (zeros > 0)
    return damaged(concat("it holds ", zeros, zeros == 1 ? " zero byte" : " zero bytes"));
  if (!has_seal(line)) {
    // One wrong byte may have made schema 3 look like schema 2.
    if (line.find("\"crc32\"") != std::string_view::npos) return damaged("its checksum is damaged");
    return parse(line, false);
  }
  const std::string_view body = line.substr(0, line.size() - kSealSize);
  const std::string_view checksum = line.substr(body.size() + kSealBegin.size(), kDigits);
  if (checksum != checksum_of(body)) return damaged("its checksum does not match");
  return parse(line, true);
}

bool begins_like_line(std::string_view text) {
  for (const int schema : {kJournalSchema, kUnsealedJournalSchema}) {
    const std::string begin = concat(R"({"schema":)", schema, R"(,"type":")");
    const std::size_t common = std::min(begin.size(), text.size());
    if (text.substr(0, common) == std::string_view(begin).substr(0, common)) return true;
  }
  return false;
}

bool is_torn_line(std::string_view text) {
  if (!begins_like_line(text) || text.find('\0') != std::string_view::npos) return false;
  const auto seal = text.find(kSealBegin);
  return seal == std::string_view::npos || seal + kSealSize >= text.size();
}

}  // namespace dstune
