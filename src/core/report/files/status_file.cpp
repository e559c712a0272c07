#include "core/report/files/status_file.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <exception>
#include <stdexcept>

#include <boost/json/object.hpp>
#include <boost/json/value_from.hpp>
#include <boost/json/value_to.hpp>
#include <unistd.h>

#include "core/base/error.hpp"
#include "core/base/files/file.hpp"
#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/report/files/own_files.hpp"

namespace dstune {

namespace {

constexpr std::array<const char*, 6> kStates = {"running", "found",       "nothing_fits",
                                                "failed",  "interrupted", "wrong_input"};

std::string utc_text(std::int64_t unix_s) {
  const auto time = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

RunState state_from(const std::string& name) {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (name == kStates[i]) return static_cast<RunState>(i);
  }
  throw std::invalid_argument(concat("unknown status \"", name, "\""));
}

std::string text_of(const json::value& value) {
  return value.is_null() ? "" : std::string(value.as_string());
}

std::string trim_end(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

std::string name_of(const RunProcess& process) {
  return process.pid == 0 ? "" : concat("; ", process.host, ", process ", process.pid);
}

}  // namespace

json::object to_json(const RunStatus& status) {
  const bool running = status.state == RunState::running;
  json::object object = {
      {"schema", 2},
      {"status", kStates[static_cast<std::size_t>(status.state)]},
      {"exit_code", running ? json::value(nullptr) : json::value(status.exit_code)},
      {"best", status.best ? json::value(json::string(*status.best)) : json::value(nullptr)},
      {"provisional", status.provisional},
      {"message", status.message},
      {"experiments", status.experiments},
      {"elapsed_s", status.elapsed}};
  if (!status.restart.empty()) object["restart"] = status.restart;
  if (!status.slow_workers.empty()) {
    object["slow_workers"] = json::value_from(status.slow_workers);
  }
  if (running) {
    for (auto& [key, value] : to_json(status.standing)) object[key] = std::move(value);
  }
  if (status.heartbeat == 0) return object;
  object["heartbeat"] = utc_text(status.heartbeat);
  object["heartbeat_unix_s"] = status.heartbeat;
  object["process"] = to_json(status.process);
  return object;
}

RunStatus run_status_from_json(const json::object& object) {
  RunStatus status;
  status.state = state_from(text_of(object.at("status")));
  if (status.state != RunState::running) status.exit_code = object.at("exit_code").to_number<int>();
  if (status.state == RunState::running) status.standing = standing_from_json(object);
  const std::string best = text_of(object.at("best"));
  if (!best.empty()) status.best = best;
  status.message = text_of(object.at("message"));
  status.experiments = object.at("experiments").to_number<int>();
  status.elapsed = object.at("elapsed_s").to_number<double>();
  if (const auto* provisional = object.if_contains("provisional")) {
    status.provisional = provisional->as_bool();
  }
  if (const auto* restart = object.if_contains("restart")) status.restart = text_of(*restart);
  if (const auto* slow = object.if_contains("slow_workers")) {
    status.slow_workers = json::value_to<std::vector<std::string>>(*slow);
  }
  if (const auto* process = object.if_contains("process")) {
    status.process = run_process_from_json(process->as_object());
    status.heartbeat = object.at("heartbeat_unix_s").to_number<std::int64_t>();
  }
  return status;
}

RunStatus stamped(RunStatus status) {
  status.process = this_process();
  status.heartbeat = static_cast<std::int64_t>(std::time(nullptr));
  return status;
}

std::string_view name_of(Life life) {
  constexpr std::array<std::string_view, 4> kNames = {"running", "dead", "finished", "unknown"};
  return kNames[static_cast<std::size_t>(life)];
}

Life judge(const RunStatus& status, Sight sight, Seconds age) {
  if (status.state != RunState::running) return Life::finished;
  if (status.heartbeat == 0) return Life::unknown;
  if (sight != Sight::unknown) return sight == Sight::alive ? Life::running : Life::dead;
  return age > kDeadAfter ? Life::dead : Life::running;
}

std::string describe(const RunStatus& status, Life life, Seconds age) {
  const std::string slow =
      status.slow_workers.empty() ? "" : concat("; slow: ", join(status.slow_workers, "; slow: "));
  const Standing& standing = status.standing;
  const std::string work = concat(
      status.experiments, standing.expected ? concat(" of about ", *standing.expected) : "",
      status.experiments == 1 && !standing.expected ? " experiment in " : " experiments in ",
      fixed(status.elapsed, 0), " s",
      life == Life::running && standing.time_left
          ? concat(", about ", rough_time(*standing.time_left), " left")
          : "",
      status.best ? concat(status.provisional ? ", best so far " : ", best ", *status.best) : "");
  const std::string sign =
      concat(name_of(status.process), ", last heartbeat ", fixed(age, 0), " s ago");
  switch (life) {
    case Life::running:
      return concat("running: ", work, sign, slow, '\n',
                    trim_end(describe(standing, status.best.value_or(""), status.elapsed + age)));
    case Life::dead:
      return concat("dead: ", work, sign, "; continue it with --resume");
    case Life::finished:
      return concat("finished: ", kStates[static_cast<std::size_t>(status.state)], ", exit code ",
                    status.exit_code, "; ", work,
                    status.message.empty() ? "" : concat("; ", status.message), slow);
    default:
      return concat("running or dead: ", work, "; an earlier version did not write which process");
  }
}

void write_status_file(const std::string& path, const RunStatus& status) {
  const std::string text = to_json_text(to_json(status), 2) + "\n";
  try {
    write_file_atomically(path, text);
  } catch (const Error&) {
    if (status.state == RunState::running) throw;  // what is there says the same
    if (!overwrite_file(path, text)) {
      ::unlink(path.c_str());  // no word is better than that it goes on
      throw;
    }
  }
}

namespace {

bool is_this(const RunProcess& process) {
  RunProcess own = this_process();
  own.launcher_folder = process.launcher_folder;
  return process == own;
}

}  // namespace

bool another_run_lives(const std::string& results_dir) {
  const std::string path = concat(results_dir, "/", kStatusName);
  if (!is_own_status_file(path)) return false;
  try {
    const RunStatus status = run_status_from_json(parse_json(read_text_file(path)).as_object());
    if (is_this(status.process)) return false;
    const auto now = static_cast<Seconds>(std::time(nullptr));
    const Seconds age = std::max(0.0, now - static_cast<Seconds>(status.heartbeat));
    return judge(status, look_for(status.process), age) == Life::running;
  } catch (const std::exception&) {
    return false;  // half a file is no sign of life
  }
}

}  // namespace dstune
