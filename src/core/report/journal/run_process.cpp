#include "core/report/journal/run_process.hpp"

#include <cerrno>
#include <csignal>
#include <exception>
#include <sstream>
#include <utility>

#include <boost/json/object.hpp>
#include <unistd.h>

#include "core/base/files/file.hpp"
#include "core/base/host/this_host.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

struct ProcessState {
  char letter = '?';             // 'Z': it is dead, but its parent has not asked for its exit code
  std::int64_t start_ticks = 0;  // 0: not known
};

// Fields 3 and 22 of /proc/PID/stat. Field 2, the name, may hold blanks.
ProcessState state_of(int pid) {
  constexpr int kFieldsBetween = 18;
  ProcessState state;
  try {
    const std::string text = read_text_file(concat("/proc/", pid, "/stat"));
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    fields >> state.letter;
    std::string skipped;
    for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
    fields >> state.start_ticks;
  } catch (const std::exception&) {
    return {};
  }
  return state;
}

}  // namespace

RunProcess this_process(std::string launcher_folder) {
  const int pid = static_cast<int>(::getpid());
  return {host_name(), pid, state_of(pid).start_ticks, process_space(), std::move(launcher_folder)};
}

Sight look_for(const RunProcess& process) {
  const std::string space = process_space();
  const bool visible = process.pid > 0 && process.host == host_name() && !space.empty() &&
                       process.process_space == space;
  if (!visible) return Sight::unknown;
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return Sight::gone;
  const ProcessState state = state_of(process.pid);
  const bool is_another = state.start_ticks != 0 && process.start_ticks != 0 &&
                          state.start_ticks != process.start_ticks;
  return is_another || state.letter == 'Z' ? Sight::gone : Sight::alive;
}

json::object to_json(const RunProcess& process) {
  return {{"host", process.host},
          {"pid", process.pid},
          {"start_ticks", process.start_ticks},
          {"process_space", process.process_space},
          {"launcher_folder", process.launcher_folder}};
}

RunProcess run_process_from_json(const json::object& object) {
  return {std::string(object.at("host").as_string()), object.at("pid").to_number<int>(),
          object.at("start_ticks").to_number<std::int64_t>(),
          std::string(object.at("process_space").as_string()),
          std::string(object.at("launcher_folder").as_string())};
}

}  // namespace dstune
