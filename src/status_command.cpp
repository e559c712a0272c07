#include "status_command.hpp"

#include <algorithm>
#include <ctime>
#include <exception>
#include <string>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/text.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/status_file.hpp"
#include "core/report/formats/document.hpp"

namespace dstune {

namespace {

RunStatus read_status(const std::string& directory) {
  const std::string path = concat(directory, "/", kStatusName);
  if (!is_own_status_file(path)) {
    throw ConfigError(directory, {{"--status",
                                   "finds no status.json of a run there; accepted: the results "
                                   "directory of a run that began"}});
  }
  try {
    return run_status_from_json(parse_json(read_text_file(path)).as_object());
  } catch (const std::exception&) {
    throw ConfigError(path, {{"--status", "is damaged; --resume writes it anew"}});
  }
}

}  // namespace

void print_status(const CommandLine& options) {
  const RunStatus status = read_status(options.status_dir.value());
  const auto now = static_cast<Seconds>(std::time(nullptr));
  // Clocks of two hosts differ.
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

}  // namespace dstune
