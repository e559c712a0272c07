// The second lock: it tells who uses a results_dir where the journal cannot be locked.
#pragma once

#include <string>

namespace dstune {

/// True if status.json of `results_dir` is that of another run which is still running, as far as
/// its process or its last heartbeat can tell (judge() in status_file.hpp). False if there is no
/// such file, or it cannot be read.
bool another_run_lives(const std::string& results_dir);

}  // namespace dstune
