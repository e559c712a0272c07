#include "commands.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <string>

#include <boost/version.hpp>

#include "core/base/error.hpp"
#include "core/base/files/exit_code.hpp"
#include "core/base/files/file.hpp"
#include "core/base/files/standard_output.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/run_folder.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/formats/document.hpp"
#include "core/report/tables/aio_sweep_table.hpp"
#include "core/report/tables/model_list.hpp"
#include "core/search/feasibility/shortage.hpp"
#include "core/search/predict/foretold.hpp"
#include "core/search/tuners/report/check.hpp"
#include "core/search/tuners/report/explanation.hpp"
#include "core/search/tuners/report/plan.hpp"
#include "core/search/tuners/report/plan_report.hpp"
#include "kernels/backends.hpp"
#include "kernels/host/nvme/drive_sweep.hpp"
#include "mpi/base/library.hpp"

namespace dstune {
namespace {

// Each line says what it is of: scripts/tune.sh takes the launcher by "MPI: ".
void print_version() {
  std::string text = concat(version_text(), ", commit ", source_commit(), "\nMPI: ", mpi_library(),
                            "\nBoost: ", BOOST_LIB_VERSION, "\n");
  for (const auto& line : library_lines()) text += concat(line, "\n");
  print(concat(text, usable_backends(), "\n"));
}

void print_backends() {
  std::string text = concat(trim(version_text()), "\nMPI: ", mpi_library_text(), "\n");
  for (const auto& line : list_backends()) text += concat(line, "\n");
  print(text);
}

void print_models(const CommandLine& options) {
  print(format_as(options.format, {[] { return format_model_list(); },
                                   [] { return to_json_text(model_list_to_json(), 2) + "\n"; }}));
}

int print_check(const CommandLine& options) {
  const auto verdict = check_run(options, local_backends());
  if (!verdict) {
    log_error("no experiment fits; --plan says what is too small");
    return exit_nothing_fits;
  }
  print(*verdict + "\n");
  return exit_found;
}

void print_explanation(const CommandLine& options) {
  const bool is_planned = options.action == CommandLine::Action::plan;
  print(is_planned ? explain_planned(options, local_backends()) : explain_recorded(options));
}

int print_plan(const CommandLine& options) {
  const Plan plan = make_plan(options, local_backends());
  log_line(concat("host overhead: ", describe(plan.machine.host_overhead)));
  for (const auto& note : plan.config.notes) log_line(note);
  const Pool* const pool = plan.pool ? &*plan.pool : nullptr;
  const auto foretold = foretell(plan.config, shown_experiments(plan.experiments, pool));
  const Foretold* const steps = foretold ? &*foretold : nullptr;
  const Document document{[&] {
                            return format_plan_table(plan.config, plan.machine, plan.stages,
                                                     plan.experiments, pool, steps);
                          },
                          [&] {
                            return format_plan_json(plan.config, plan.machine, plan.stages,
                                                    plan.experiments, pool, steps);
                          }};
  print(format_as(options.format, document));
  if (fits(plan)) return exit_found;
  log_error(nothing_fits_text(full_stores(plan)));
  return exit_nothing_fits;
}

RunStatus read_status(const std::string& directory) {
  const std::string path = concat(status_folder(directory), "/", kStatusName);
  if (!is_own_status_file(path)) {
    throw ConfigError(directory, {{"--status",
                                   "finds no status.json of a run there; accepted: the results "
                                   "directory of a run that has started"}});
  }
  try {
    return run_status_from_json(parse_json(read_text_file(path)).as_object());
  } catch (const std::exception&) {
    throw ConfigError(path, {{"--status", "is damaged; --resume rewrites it"}});
  }
}

void print_status(const CommandLine& options) {
  const RunStatus status = read_status(options.status_dir.value());
  const auto now = static_cast<Seconds>(std::time(nullptr));
  // The clocks of two hosts differ, so that the heartbeat may lie ahead of `now`.
  const Seconds age = std::max(0.0, now - static_cast<Seconds>(status.heartbeat));
  const Life life = judge(status, look_for(status.process), age);
  const Document document{[&] { return describe(status, life, age) + "\n"; },
                          [&] {
                            json::object object = to_json(status);
                            object["life"] = name_of(life);
                            object["heartbeat_age_s"] =
                                status.heartbeat == 0 ? json::value(nullptr) : json::value(age);
                            return to_json_text(object, 2) + "\n";
                          }};
  print(format_as(options.format, document));
}

int print_nvme_sweep(const CommandLine& options) {
  const auto swept =
      host::sweep_drive({.directory = *options.nvme_sweep, .budget = options.nvme_budget});
  const AioSweepReport& report = swept.report;
  for (const auto& note : report.notes) log_line(note);
  if (swept.fault) {
    log_error(concat(host::to_text(*swept.fault), " (after ", format_bytes(report.written),
                     " were written)"));
    return exit_drive_failed;
  }
  print(format_as(options.format, {[&] { return format_aio_sweep(report); },
                                   [&] { return to_json_text(to_json(report), 2) + "\n"; }}));
  return report.best ? exit_found : exit_drive_failed;
}

}  // namespace

int run_command(const CommandLine& options) {
  if (options.action == CommandLine::Action::help) {
    print(help_text());
  } else if (options.action == CommandLine::Action::version) {
    print_version();
  } else if (options.action == CommandLine::Action::list_backends) {
    print_backends();
  } else if (options.action == CommandLine::Action::list_models) {
    print_models(options);
  } else if (options.action == CommandLine::Action::status) {
    print_status(options);
  } else if (options.action == CommandLine::Action::nvme_sweep) {
    return print_nvme_sweep(options);
  } else if (options.explain) {
    print_explanation(options);
  } else if (options.action == CommandLine::Action::check) {
    return print_check(options);
  } else {
    return print_plan(options);
  }
  return exit_found;
}

}  // namespace dstune
