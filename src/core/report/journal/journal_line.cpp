#include "core/report/journal/journal_line.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <utility>

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

constexpr std::size_t kSlices = 8;
using CrcTables = std::array<std::array<std::uint32_t, 256>, kSlices>;

// What a byte adds to the checksum once 0, 1, ... 7 more bytes have followed it.
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1U) ^ ((rest & 1U) * 0xEDB88320U);
    tables[0][byte] = rest;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

// CRC-32 by eight bytes at a time, since a long journal has tens of megabytes.
std::uint32_t crc32(std::string_view text) {
  static constexpr CrcTables kTables = make_crc_tables();
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::uint32_t crc = 0xFFFFFFFFU;
  for (; text.size() >= kSlices; text.remove_prefix(kSlices)) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < kSlices; ++i) {
      const std::uint32_t old = i < 4 ? (crc >> (8U * i)) & 0xFFU : 0;
      next ^= kTables[kSlices - 1 - i][byte_at(i) ^ old];
    }
    crc = next;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ byte_at(i)) & 0xFFU];
  }
  return ~crc;
}

std::string checksum_of(std::string_view text) {
  std::array<char, kDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(crc32(text)));
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
  return damaged("it is no JSON object");
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
