#include "core/report/files/results_directory.hpp"

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <variant>

#include <boost/json/value_from.hpp>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/log.hpp"
#include "core/base/printable.hpp"
#include "core/base/text.hpp"
#include "core/experiment/step_config.hpp"
#include "core/report/files/csv.hpp"
#include "core/report/files/existing_results.hpp"
#include "core/report/files/free_space.hpp"
#include "core/report/files/optimal.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/journal/journal_reader.hpp"
#include "core/report/tables/summary.hpp"

namespace dstune {

namespace fs = std::filesystem;

namespace {

// A run that goes on finds thousands of files as it would write them; to read one is far cheaper.
bool holds(const std::string& path, std::string_view text) {
  std::error_code fault;
  if (fs::symlink_status(path, fault).type() != fs::file_type::regular) return false;
  if (fs::file_size(path, fault) != text.size()) return false;
  try {
    return read_text_file(path) == text;
  } catch (const Error&) {
    return false;  // it cannot be read, but may be replaced
  }
}

void write_if_new(const std::string& path, const std::string& text) {
  if (!holds(path, text)) write_file_atomically(path, text, Durability::process_crash);
}

void write_json(const std::string& path, const json::value& value, Durability durability) {
  write_file_atomically(path, to_json_text(value, 2) + "\n", durability);
}

void remove_file(const std::string& path) {
  std::error_code fault;
  fs::remove(path, fault);
  if (fault) throw_file_error("remove", path, fault.value());
}

template <class Text>
void write_or_remove(const std::string& path, bool is_wanted, Text text) {
  if (!is_wanted) return remove_file(path);
  write_file_atomically(path, text());
}

json::object experiment_json(const Experiment& experiment) {
  json::object object = to_json(experiment);
  return {{"name", experiment.name},
          {"ds_config", experiment.ds_config.json()},
          {"num_gpus", experiment.ranks},
          {"dstune", json::object{{"settings", std::move(object["settings"])}}}};
}

// Makes `folder`. False, with a warning, if `description` in it is another program's.
bool may_write(const std::string& folder, const std::string& description) {
  std::error_code fault;
  ensure_directory(folder);
  if (!fs::exists(fs::symlink_status(description, fault))) return true;
  if (is_own_experiment_file(description)) return true;
  log_warning(concat(
      description,
      " belongs to another program and is left as it is; the journal has what would be there"));
  return false;
}

}  // namespace

Journal::Mode journal_mode(ExistingResults existing) {
  if (existing == ExistingResults::refuse) return Journal::Mode::create;
  return existing == ExistingResults::resume ? Journal::Mode::resume : Journal::Mode::replace;
}

ResultsDirectory::ResultsDirectory(std::string results_dir, std::string exps_dir)
    : results_dir_(std::move(results_dir)), exps_dir_(std::move(exps_dir)) {}

ResultsDirectory ResultsDirectory::prepare(const std::string& results_dir,
                                           const std::string& exps_dir, ExistingResults existing) {
  check_existing_results(results_dir, exps_dir, existing);
  for (const auto& directory : {results_dir, exps_dir}) {
    const std::string shortage = find_shortage(look_for_space(directory));
    if (shortage.empty()) continue;
    throw ConfigError(directory, {{"--results-dir", concat(shortage,
                                                           "; free some, or choose another "
                                                           "--results-dir")}});
  }
  if (existing == ExistingResults::overwrite) remove_existing_results(results_dir, exps_dir);
  ensure_directory(results_dir);
  ensure_directory(exps_dir);
  return {results_dir, exps_dir};
}

std::string ResultsDirectory::journal_path() const { return results_dir_ + "/journal.jsonl"; }

std::string ResultsDirectory::experiment_path(const std::string& name) const {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    throw std::invalid_argument(concat("experiment_path: \"", name, "\" is not a folder name"));
  }
  return concat(results_dir_, "/", name);
}

std::string ResultsDirectory::path_of(const char* stem, bool provisional,
                                      const char* extension) const {
  return concat(results_dir_, "/", stem, provisional ? "_provisional." : "_optimal.", extension);
}

std::string ResultsDirectory::optimal_config_path(bool provisional) const {
  return path_of("ds_config", provisional, "json");
}

std::string ResultsDirectory::command_path(bool provisional) const {
  return path_of("cmd", provisional, "txt");
}

std::vector<std::string> ResultsDirectory::optimum_paths(bool provisional) const {
  std::vector<std::string> paths = {optimal_config_path(provisional), command_path(provisional)};
  for (const EmittedFormTraits& form : kEmittedForms) {
    paths.push_back(path_of(form.file, provisional, form.extension));
  }
  return paths;
}

void ResultsDirectory::write_record(const Record& record) const {
  const Experiment& experiment = record.experiment;
  const std::string folder = experiment_path(experiment.name);
  const auto write = [&](const std::string& path, const json::value& value) {
    write_if_new(path, to_json_text(value, 2) + "\n");
  };
  if (!may_write(folder, folder + "/exp.json")) return;
  const std::string in_exps_dir = concat(exps_dir_, "/", experiment.name, ".json");
  if (may_write(exps_dir_, in_exps_dir)) write(in_exps_dir, experiment_json(experiment));
  json::object description = experiment_json(experiment);
  json::object& ours = description["dstune"].as_object();
  ours["outcome"] = to_json(record.outcome);
  ours["ranks"] = json::value_from(record.ranks);
  ours["started_s"] = record.started;
  ours["finished_s"] = record.finished;
  if (!record.failed_tries.empty()) ours["failed_tries"] = to_json(record).at("failed_tries");
  write(folder + "/exp.json", description);  // first: it says whose folder this is
  write(folder + "/ds_config.json", experiment.ds_config.json());
  if (const auto* measured = std::get_if<Measured>(&record.outcome)) {
    write(folder + "/metrics.json", metrics_json(experiment, *measured));
    remove_file(folder + "/stderr.log");  // of an attempt that lost a worker
  } else {
    write_if_new(folder + "/stderr.log", printable_lines(describe(record.outcome)) + "\n");
    remove_file(folder + "/metrics.json");
  }
}

void ResultsDirectory::write_model_info(const ModelInfoFile& info) const {
  const std::string folder = experiment_path(kProfileName);
  ensure_directory(folder);
  write_json(folder + "/model_info.json",
             json::object{{"num_params", info.num_params},
                          {"trainable_num_params", info.trainable_num_params},
                          {"activation_mem_per_gpu", info.activation_bytes_per_micro_batch},
                          {"rank", 0},
                          {"dstune", json::object{{"activation_bytes_per_micro_batch",
                                                   info.activation_bytes_per_micro_batch}}}},
             Durability::process_crash);
}

void ResultsDirectory::write_status(const RunStatus& status) const {
  write_status_file(results_dir_ + "/status.json", status);
}

std::vector<std::string> ResultsDirectory::write_optimum(const RunResults& results) const {
  const auto absolute = [](const std::string& path) {
    return fs::absolute(path).lexically_normal().string();
  };
  const bool provisional = results.provisional;
  const json::object config =
      optimal_config(results.best->experiment, results.ranks, results.left_to_trainer);
  write_json(optimal_config_path(provisional), config, Durability::power_loss);
  OptimumFiles files{absolute(optimal_config_path(provisional))};
  for (std::size_t i = 0; i < std::size(kEmittedForms); ++i) {
    const auto form = static_cast<EmittedForm>(i);
    const auto path = path_of(kEmittedForms[i].file, provisional, kEmittedForms[i].extension);
    write_or_remove(path, results.emit.contains(form), [&] {
      return emitted_text(
          form, {config, results.best->experiment, results.training_ranks, absolute(path), files});
    });
  }
  std::vector<std::string> words;
  write_or_remove(command_path(provisional), !results.training_command.empty(), [&] {
    json::object mapped = config;
    mapped["sequence_length"] = results.best->experiment.settings.sequence_length;
    words = optimal_words(results.training_command, results.arg_mappings, mapped, files);
    return shell_line(words) + "\n";
  });
  return words;
}

std::vector<std::string> ResultsDirectory::finish(const RunResults& results) const {
  const Record* best = results.best ? &*results.best : nullptr;
  std::vector<std::string> command;
  if (best != nullptr) command = write_optimum(results);
  for (const bool provisional : {false, true}) {
    if (best != nullptr && provisional == results.provisional) continue;
    for (const auto& path : optimum_paths(provisional)) remove_file(path);
  }
  const std::string best_folder = best == nullptr ? "" : experiment_path(best->experiment.name);
  auto settings = varying_axes(results.records);
  add_axes(settings, results.searched);
  write_file_atomically(
      results_dir_ + "/results.csv",
      to_csv(result_rows(results.records, results.metric, results.optimum), settings));
  if (results.predictions.empty()) {
    remove_file(results_dir_ + "/predictions.csv");
  } else {
    write_file_atomically(results_dir_ + "/predictions.csv", predictions_csv(results.predictions));
  }
  write_file_atomically(
      results_dir_ + "/summary.txt",
      printable_lines(summary_text(results.records, results.metric, best, best_folder,
                                   results.duration, results.provisional, results.notes)));
  return command;
}

json::object metrics_json(const Experiment& experiment, const Measured& measured) {
  const auto micro_steps = static_cast<double>(make_step_config(experiment).accumulation_steps);
  const double to_us_per_micro_step = 1e6 / micro_steps;
  return {{"fwd", measured.forward_time * to_us_per_micro_step},
          {"bwd", measured.backward_time * to_us_per_micro_step},
          {"step", measured.optimizer_time * to_us_per_micro_step},
          {"latency", typical_step_time(measured) * 1e6},
          {"FLOPS_per_gpu", measured.flops_per_s_per_rank},
          {"throughput", measured.samples_per_s},
          {"rank", 0},
          {"dstune", to_json(Outcome{measured})}};
}

}  // namespace dstune
