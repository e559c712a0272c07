// The bytes of journal.jsonl: locked, appended to, replaced whole, never lost.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/files/file.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// Content of the journal `path`; none if there is no such file. Neither follows symbolic links nor
/// waits for a FIFO. @throws ConfigError  if it is no regular file; Error on I/O faults
std::optional<std::string> read_journal_file(const std::string& path);

/// Keeps `text` beside the journal `path` in PATH.bak or, where that holds something else, in
/// PATH.bak.2 and so on. On disk when it returns. @returns its path. @throws Error
std::string back_up_journal(const std::string& path, std::string_view text);

/// Whether another run that uses the journal's folder shows a sign of life: the second lock, for
/// file systems that lock no files (some NFS and Lustre).
using SignOfLife = std::function<bool()>;

/// A journal of which this process holds the lock. The content of the file is also in memory, so a
/// file that is deleted during the run costs nothing.
class JournalFile {
 public:
  enum class Open {
    create,    ///< the file must not exist
    existing,  ///< or is made empty
  };

  /// Opens and locks; waits for the lock for `patience`. Where files cannot be locked, which is
  /// warned of, `other_lives` stands for the lock: it is asked now and before every line.
  /// @throws ConfigError  if the file is no regular file, or another run holds it; Error
  JournalFile(std::string path, Open open, Seconds patience, SignOfLife other_lives = {});

  /// The content of the file. @throws Error
  std::string read() const;

  /// The file's whole lines are `whole_lines`; what may follow them is cut off before the next one.
  void adopt(std::string whole_lines);

  /// Adds `line` with its line break: on disk when it returns, or not there at all.
  /// @throws Error  also as stay_in_place() does
  void append(std::string_view line);

  /// The file holds `text` and nothing else: a crash at any moment leaves the old or the new
  /// content.
  /// @throws Error
  void replace(std::string text);

  /// Looks whether the file is still the one at its path. If it was deleted, it is written anew,
  /// with its folder. @throws Error  if another file is there instead, which is not touched, or
  /// another run uses it too: what the run had is kept by back_up_journal()
  void stay_in_place();

  /// False if another file is at its path, or another run uses it too.
  bool is_ours() const;

  const std::string& path() const { return path_; }

 private:
  void lock(Seconds patience);
  bool is_used_by_another() const;
  void cut_off();

  std::string path_;
  FileHandle file_;
  std::string text_;   ///< the whole lines in the file
  bool torn_ = false;  ///< more may follow them: a part of a line
  SignOfLife other_lives_;
  bool has_lock_ = true;  ///< false: the file system has none
};

/// True if a run holds the journal `path` at this moment; false too if there is no such file.
bool is_journal_in_use(const std::string& path, const SignOfLife& other_lives = {});

}  // namespace dstune
