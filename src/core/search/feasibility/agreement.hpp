// Whether workers have what collectives need to be alike: a library's version and its settings.
#pragma once

#include <string>
#include <vector>

#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// Checks the settings of the backend's devices that ranks of a group must have alike
/// (CommonSetting::must_agree), where groups of so many ranks cannot keep those apart that differ:
/// on one host, or where a group is larger than what any host has.
/// @throws ConfigError  with a problem for each that is not: what most workers have, which others
///                      have something else, and what
void check_agreement(const std::string& backend, const std::vector<WorkerInfo>& workers,
                     int group_size);

/// A line for each setting that is not alike and was no fault above.
std::vector<std::string> disagreement_warnings(const std::string& backend,
                                               const std::vector<WorkerInfo>& workers);

}  // namespace dstune
