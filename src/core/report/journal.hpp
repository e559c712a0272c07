// The run's memory: one JSON line per event in results_dir/journal.jsonl, on disk before anyone
// acts on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.hpp"
#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/train/experiment.hpp"
#include "core/train/outcome.hpp"

namespace dstune {

/// What a run must share with the one it resumes.
struct RunIdentity {
  json::object model;  ///< to_json(ModelSpec)
  std::string backend;
  std::string
      machine;  ///< CPU or GPU model of the workers, sorted and counted: "2 x Intel Xeon ..."

  bool operator==(const RunIdentity&) const = default;
};

/// A finished experiment.
struct Record {
  Experiment experiment;
  Outcome outcome;
  std::vector<int> ranks;  ///< world ranks that ran it
  Seconds started = 0;     ///< since the start of the (first) run, on rank 0's clock
  Seconds finished = 0;
};

/// Every event is one O_APPEND write of a whole line followed by fsync. Lines have "schema": 2,
/// "type": "run" | "started" | "finished" | "stopped", "time" (UTC) and "at_s" (now()). The file is
/// locked while the journal lives: a second run cannot write to it.
class Journal {
 public:
  enum class Mode { create, resume };

  /// How long to wait for the lock: ranks of a killed mpirun take seconds to disappear.
  static constexpr Seconds kLockPatience = 15;

  /// create: the file must not exist. resume: reads what is there, if anything; a torn last line is
  /// cut off.
  /// @throws Error  on I/O faults; ConfigError if another run holds the file, if resume finds
  ///         another identity and `force` is false, or a line that is damaged but not the last one
  Journal(const std::string& path, Mode mode, const RunIdentity& identity, bool force = false,
          Seconds lock_patience = kLockPatience);

  /// Before an experiment is sent to its ranks. @throws Error
  void started(const Experiment& experiment, const std::vector<int>& ranks);
  /// Before anyone acts on its outcome. @throws Error
  void finished(const Record& record);
  /// The run ends early on purpose (a signal): what is running now did not crash it. @throws Error
  void stopped();

  /// The result of an equal experiment (Experiment::key()) of this or an earlier run that need not
  /// be repeated: Measured, OutOfMemory, Skipped, Failed other than worker_lost; also
  /// Failed{quarantined} if it was running in two crashes of the whole run. Its experiment is
  /// `experiment`, whatever name it ran under.
  std::optional<Record> find(const Experiment& experiment) const;

  /// All finished records, in the order of the file.
  const std::vector<Record>& records() const { return records_; }

  /// Seconds since the start of the run (continued over resumes).
  Seconds now() const;

 private:
  void lock(Seconds patience);
  void read_existing(const RunIdentity& identity, bool force);
  void append(const char* type, json::object content);
  void remember(Record record);

  std::string path_;
  FileHandle file_;
  Bytes size_ = 0;      ///< of the whole lines in the file
  bool torn_ = false;   ///< a failed write may have left a part of a line behind
  Seconds offset_ = 0;  ///< added to the clock: where the last run ended
  std::int64_t clock_start_ns_ = 0;
  std::vector<Record> records_;
  std::map<std::string, std::size_t> finished_;  ///< key → index in records_
  std::map<std::string, int> crashes_;           ///< key → runs that ended while it was running
};

/// True if a run holds the journal `path` at this moment; false too if there is no such file.
bool is_journal_in_use(const std::string& path);

}  // namespace dstune
