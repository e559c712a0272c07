// What a journal.jsonl says, read from its text. Pure: no file is touched.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/journal.hpp"

namespace dstune {

struct JournalContent {
  std::optional<RunIdentity> identity;  ///< of the last run; none in an empty journal
  std::vector<Record> records;          ///< finished, in the order of the file
  std::map<std::string, int> crashes;   ///< key → runs that ended while it was running
  Seconds end = 0;                      ///< latest time of any line
  std::size_t valid_bytes = 0;          ///< what follows is a torn last line
};

/// Reads whole lines. A last line without its newline, or damaged, was torn by a crash before
/// anyone acted on it: it is left out of `valid_bytes`.
///
/// @param path  for messages
/// @throws ConfigError  a damaged line that is not the last, or another schema
JournalContent read_journal(std::string_view text, const std::string& path);

json::object to_json(const RunIdentity& identity);
json::object to_json(const Record& record);

/// How `found` differs from `recorded`: one problem per difference; a model's name is a label and
/// does not count.
std::vector<Problem> differences(const RunIdentity& recorded, const RunIdentity& found);

}  // namespace dstune
