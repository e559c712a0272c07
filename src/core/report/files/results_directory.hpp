// The files of results_dir and exps_dir (DeepSpeed's layout and our additions).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/command_line/command_line.hpp"
#include "core/report/files/emitted.hpp"
#include "core/report/files/predicted_steps.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/axes.hpp"
#include "core/report/tables/metric_value.hpp"
#include "core/report/tables/result_rows.hpp"

namespace dstune {

/// The treatment of results that are already there.
enum class ExistingResults { refuse, overwrite, resume };

Journal::Mode journal_mode(ExistingResults existing);

/// profile_model_info/model_info.json.
struct ModelInfoFile {
  std::int64_t num_params = 0;
  std::int64_t trainable_num_params = 0;
  Bytes activation_bytes_per_micro_batch = 0;
};

/// The results that finish() writes at the end of a run, complete or not.
struct RunResults {
  std::vector<Record> records;  ///< in the order they finished
  Metric metric = Metric::throughput;
  std::optional<Record> best;
  int ranks = 1;                              ///< data-parallel ranks of the optimum's batch size
  std::vector<std::string> training_command;  ///< after "--"; empty: no cmd_optimal.txt
  json::object arg_mappings;
  std::set<EmittedForm> emit;    ///< the optimum in these forms too
  TrainingRanks training_ranks;  ///< who trains with it
  Seconds duration = 0;
  bool provisional = false;        ///< the run was interrupted: going on may find a better optimum
  std::vector<std::string> notes;  ///< what the optimum must be read with, a line each
  std::vector<std::string> left_to_trainer;     ///< TuningConfig::left_to_trainer
  std::vector<PredictedStep> predictions = {};  ///< none: no predictions.csv
  Optimum optimum = {};                         ///< of `best`
  std::vector<ResultAxis> searched = {};        ///< settings of the space, varied in records or not
};

/// A directory that is ours to write to. Files are replaced atomically; what the journal does not
/// hold (status, summary, optimum, table) is fsynced, what can be made again from it is not.
class ResultsDirectory {
 public:
  /// Makes both directories, or takes over what is there as `existing` says.
  ///
  /// overwrite removes only what the journal there and a fixed list of names say is of its runs,
  /// and leaves the journal itself to Journal::Mode::replace; everything else stays and is named. A
  /// directory without a journal of ours is nobody's results, and is not touched.
  ///
  /// @throws ConfigError  if something is there that must not be touched, with what to do; another
  ///                      run uses it; or the disk is all but full. Then nothing was changed
  /// @throws Error        on I/O faults
  static ResultsDirectory prepare(const std::string& results_dir, const std::string& exps_dir,
                                  ExistingResults existing);

  const std::string& path() const { return results_dir_; }
  std::string journal_path() const;
  std::string experiment_path(const std::string& name) const;
  /// ds_config_optimal.json, or ds_config_provisional.json.
  std::string optimal_config_path(bool provisional = false) const;

  /// Folder of a finished experiment: ds_config.json, exp.json, metrics.json if it was measured,
  /// stderr.log if not; and exps_dir/<name>.json. Call it for records of the journal too: what an
  /// interrupted run left unfinished is made whole, and what is there already is not written again.
  /// Another program's experiment of that name is left as it is, with a warning. @throws Error
  void write_record(const Record& record) const;

  /// profile_model_info/model_info.json. @throws Error
  void write_model_info(const ModelInfoFile& info) const;

  /// status.json. @throws Error
  void write_status(const RunStatus& status) const;

  /// summary.txt, results.csv, predictions.csv where there are any and, if there is an optimum,
  /// ds_config_optimal.json, cmd_optimal.txt and the other forms, or ds_config_provisional.json and
  /// so on. A file of these that would be of an earlier state is removed.
  /// @returns the words of cmd_optimal.txt; none if it is not written
  /// @throws Error
  std::vector<std::string> finish(const RunResults& results) const;

 private:
  ResultsDirectory(std::string results_dir, std::string exps_dir);
  std::string path_of(const char* stem, bool provisional, const char* extension) const;
  std::string command_path(bool provisional) const;
  std::vector<std::string> optimum_paths(bool provisional) const;
  std::vector<std::string> write_optimum(const RunResults& results) const;

  std::string results_dir_;
  std::string exps_dir_;
};

/// DeepSpeed's metrics.json: fwd, bwd, step (us per micro-step), latency (us per optimizer step,
/// wall time), throughput (samples/s), FLOPS_per_gpu (FLOP/s), rank; and our outcome as "dstune".
json::object metrics_json(const Experiment& experiment, const Measured& measured);

}  // namespace dstune
