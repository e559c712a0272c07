// One line of journal.jsonl as text: a JSON object that ends in the checksum of all before it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/json.hpp"

namespace dstune {

constexpr int kJournalSchema = 3;          ///< what is written
constexpr int kUnsealedJournalSchema = 2;  ///< what is read too: lines without a checksum

/// `content` as a line without its line break:
///
///     {"schema":3,...,"crc32":"8d4f3a01"}
///
/// crc32 is the CRC-32 (zlib's) of the bytes before `,"crc32"`, as 8 lower-case digits.
std::string seal_line(const json::object& content);

/// The content of a line, or why it cannot be believed.
struct JournalLine {
  /// None: damaged. It lives in memory of its own that copies of its parts share, so that what
  /// stays is copied into other memory (own_copy()).
  std::shared_ptr<const json::object> content;
  bool sealed = false;  ///< it has a checksum, which matches
  std::string damage;   ///< "its checksum does not match"; "" if there is content
};

/// @param line  without its line break
JournalLine open_line(std::string_view line);

/// True if `text` begins like a line, as far as it goes.
bool begins_like_line(std::string_view text);

/// True if `text`, which has no line break, may be what a crash left of a line.
bool is_torn_line(std::string_view text);

}  // namespace dstune
