// What the optimum is to what the user trains now: its global batch, and its speed.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// Where the search chose the global batch: that it did, what the optimum trains and what the
/// file's own numbers make, and how to keep a batch; "" where it was fixed.
std::string batch_remark(const TuningConfig& config, int group_size, const Record& best);

/// The same before the search; "" where the batch is fixed.
std::string free_batch_text(const TuningConfig& config);

/// How many times as fast as the user's own configuration the optimum is, that it is the best
/// itself, or why it has no time; "" if the file does not say one (baseline_of()), or it was not
/// tried.
/// @param best  nullptr: none was found
std::string baseline_remark(const TuningConfig& config, int group_size,
                            const std::vector<Record>& records, const Record* best);

/// The name of the experiment that is the user's own configuration; "" if there is none.
std::string baseline_name(const TuningConfig& config, int group_size,
                          const std::vector<Record>& records);

}  // namespace dstune
