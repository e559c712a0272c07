// The content of a journal.jsonl, read from its text. Pure: no file is touched.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/journal/run_process.hpp"

namespace dstune {

/// A line that is not believed.
struct DamagedLine {
  std::size_t number = 0;  ///< in the file, from 1
  std::string cause;       ///< "its checksum does not match"
};

struct JournalContent {
  /// Whose file it is: ours if a line of it is, a remnant if it may be what a crash left of the
  /// first line (or is empty), else foreign: not to be touched.
  enum class Origin { ours, remnant, foreign };

  Origin origin = Origin::remnant;
  std::optional<RunIdentity> identity;  ///< of the last run; none if no such line is left
  std::vector<Record> records;          ///< finished, in the order of the file
  std::vector<std::string> keys;        ///< of the records' experiments, in their order
  std::map<std::string, int> crashes;   ///< key → runs that ended while it was running
  std::set<std::string> names;          ///< of all experiments that were started or finished
  std::vector<RunProcess> processes;    ///< that wrote it
  Bytes memory_limit = 0;               ///< of the last experiment that was started; 0: none was
  Bytes host_memory_limit = 0;          ///< the same of the host's memory
  Seconds end = 0;                      ///< latest time of any line
  std::string whole_lines;              ///< the text without what is damaged or torn
  bool torn = false;                    ///< a crash left a part of a last line
  std::vector<DamagedLine> damaged;     ///< in the order of the file
};

/// Reads whole lines, each believed only if its checksum matches (lines of schema 2 have none) and
/// its numbers can be true. The others are damaged: as if they had never been written.
///
/// A last line without its line break was torn by a crash before anyone acted on it. Where a line
/// is damaged, what ran at that moment is not held to have crashed the run.
///
/// @param path  for messages
/// @throws ConfigError  another schema
JournalContent read_journal(std::string_view text, const std::string& path);

/// Reads as read_journal() does. @throws ConfigError  also if the file is foreign
JournalContent read_own_journal(std::string_view text, const std::string& path);

/// Whether a line of it is ours; reads no further than the first one that is.
/// @throws ConfigError  as read_own_journal() does, of the lines up to there
bool is_own_journal(std::string_view text, const std::string& path);

/// A journal as it was before its file was locked.
struct EarlierJournal {
  std::string text;
  JournalContent content;
};

/// Reads the file `path` as read_own_journal() does; none if there is no such file.
/// @throws ConfigError, Error  also as read_journal_file() does
std::optional<EarlierJournal> read_earlier_journal(const std::string& path);

/// "FILE: line 3 is damaged (its checksum does not match); skipped": a warning per line, of many
/// lines the first few and a count.
std::vector<std::string> describe_damage(const JournalContent& content, const std::string& path);

json::object to_json(const Record& record);
json::object to_json(const FailedTry& failed);

}  // namespace dstune
