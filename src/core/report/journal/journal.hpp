// The run's memory: one JSON line per event in results_dir/journal.jsonl, on disk before anyone
// acts on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/units.hpp"
#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/report/journal/journal_file.hpp"
#include "core/report/journal/run_identity.hpp"
#include "core/report/journal/run_process.hpp"

namespace dstune {

/// A try that failed and was followed by another: the failure may be its workers'.
struct FailedTry {
  struct Culprit {
    int rank = 0;  ///< world rank
    std::string host;

    bool operator==(const Culprit&) const = default;
  };

  std::vector<int> ranks;         ///< world ranks that ran it
  std::vector<Culprit> culprits;  ///< those of them that may be the cause
  bool answered = true;           ///< the culprits said so themselves: neither dead nor stuck
  std::string reason;             ///< describe() of the outcome
};

/// A finished experiment.
struct Record {
  Experiment experiment;
  Outcome outcome;
  std::vector<int> ranks;  ///< world ranks that ran it
  Seconds started = 0;     ///< since the start of the (first) run, on rank 0's clock
  Seconds finished = 0;
  std::vector<FailedTry> failed_tries = {};  ///< before the one whose outcome this is
  /// How much longer it took than alone at the first speed of the machine (MachineWatch), as far as
  /// that is known; no part of the journal.
  double slowed = 1;
};

/// The numbers of an experiment that was measured, else nullptr.
inline const Measured* measured_of(const Record& record) {
  return std::get_if<Measured>(&record.outcome);
}

struct EarlierJournal;

/// Every event is one O_APPEND write of a whole line followed by fsync. Lines have "schema": 3,
/// "type": "run" | "started" | "finished" | "stopped", "time" (UTC), "at_s" (now()) and a checksum
/// (seal_line()). The file is locked while the journal lives: a second run cannot write to it.
class Journal {
 public:
  enum class Mode {
    create,   ///< the file must not exist
    resume,   ///< reads what is there, if anything
    replace,  ///< starts anew; until its first line is on disk, the old journal is
  };

  /// How long to wait for the lock: ranks of a killed mpirun take seconds to disappear.
  static constexpr Seconds kLockPatience = 15;

  /// Damaged lines of a journal that is resumed are warned of and left out, and the old file is
  /// kept as PATH.bak (back_up_journal()); a torn last line is cut off. Differences in the identity
  /// are named: as problems, or with `force` as warnings.
  /// @param process  that runs, for the record
  /// @param other_lives  asked where the file cannot be locked
  /// @param earlier  of the same file, for resume: its content is taken if the file has not changed
  ///        since, so that nothing is read twice
  /// @throws Error  on I/O faults; ConfigError if `path` is no plain file or no journal of ours, if
  ///         another run holds it, or if resume finds another schema, or another identity and
  ///         `force` is false. Then nothing was changed
  Journal(const std::string& path, Mode mode, const RunIdentity& identity, bool force = false,
          Seconds lock_patience = kLockPatience, const RunProcess& process = this_process(),
          SignOfLife other_lives = {}, EarlierJournal* earlier = nullptr);

  /// To be called before an experiment is sent to its ranks. @throws Error
  void started(const Experiment& experiment, const std::vector<int>& ranks);
  /// To be called before anyone acts on its outcome. @throws Error
  void finished(const Record& record);
  /// The run ends early on purpose (a signal): what is running now did not crash it. @throws Error
  void stopped();

  /// The result of an equal experiment (Experiment::key()) of this or an earlier run that need not
  /// be repeated: Measured, OutOfMemory, Skipped, Failed other than worker_lost and wrong_sums;
  /// also Failed{quarantined} if it was running in two crashes of the whole run. Its experiment is
  /// `experiment`, whatever name it ran under, with the recorded give_up_above.
  std::optional<Record> find(const Experiment& experiment) const;

  /// Whether find() has what it says of this experiment from a record, and not from crashes alone.
  bool has_record_of(const Record& found) const {
    return finished_.contains(found.experiment.key());
  }

  /// From now on earlier runs' failures are not known, nor what was out of memory below its limit:
  /// find() does not return them, and records() has no failed tries.
  void forget_failures();

  /// RunIdentity::learnt of the first run, which this one continues.
  const json::object& learnt() const { return learnt_; }

  /// All finished records, in the order of the file.
  const std::vector<Record>& records() const { return records_; }

  /// Names of all experiments that were started or finished.
  const std::set<std::string>& names() const { return names_; }
  /// The processes of the runs that are continued or replaced, this one not among them.
  const std::vector<RunProcess>& past_processes() const { return past_processes_; }

  /// Looks whether the file is still there, see JournalFile::stay_in_place(). @throws Error
  void stay_in_place() { file_.stay_in_place(); }
  /// False if another file is in its place: the folder is another run's now.
  bool is_in_place() const { return file_.is_ours(); }

  /// Seconds since the start of the run (continued over resumes).
  Seconds now() const;

 private:
  void read_existing(const RunIdentity& identity, bool force, EarlierJournal* earlier);
  void check_identity(const std::optional<RunIdentity>& recorded, const RunIdentity& found,
                      bool force) const;
  void append(const char* type, json::object content);
  std::string make_line(const char* type, json::object content) const;
  void remember(Record record, std::string key);

  JournalFile file_;
  Seconds offset_ = 0;  ///< added to the clock: where the last run ended
  std::int64_t clock_start_ns_ = 0;
  std::vector<Record> records_;
  std::map<std::string, std::size_t> finished_;  ///< key → index in records_
  std::map<std::string, int> crashes_;           ///< key → runs that ended while it was running
  std::set<std::string> names_;
  json::object learnt_;
  std::vector<RunProcess> past_processes_;
};

}  // namespace dstune
