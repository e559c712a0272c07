// Files that killed runs left behind, removed at the next start: only what is provably theirs.
#pragma once

#include <string>

#include "core/report/files/own_files.hpp"

namespace dstune {

/// Removes unfinished files of `runs` (find_unfinished_files()) and the temporary folders of their
/// launchers, where the launcher is seen to be dead. Best effort: what cannot be removed stays.
/// Call it while the journal's lock is held.
/// @param own_launcher_folder  of the calling process: never removed
void remove_leftovers(const std::string& results_dir, const std::string& exps_dir, const Runs& runs,
                      const std::string& own_launcher_folder);

}  // namespace dstune
