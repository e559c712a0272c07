#include "core/report/files/second_lock.hpp"

#include <algorithm>
#include <ctime>
#include <exception>

#include "core/base/file.hpp"
#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/report/files/own_files.hpp"
#include "core/report/files/status_file.hpp"

namespace dstune {

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
