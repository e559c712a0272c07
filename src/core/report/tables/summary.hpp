// summary.txt: DeepSpeed's table of tuning spaces, and its closing lines.
#pragma once

#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"
#include "core/report/tables/metric_value.hpp"

namespace dstune {

/// Folder of model_info.json, and the name of the run that measured it in earlier versions.
constexpr const char* kProfileName = "profile_model_info";

/// Whether it checks or measures the machine, or looks at the optimum again: no table and no count
/// has it.
bool is_beside_search(const Experiment& experiment);

/// All but that run, which journals of earlier versions hold, the measuring of the machine, and
/// references of MachineWatch: they belong to no tuning space.
std::vector<Record> tuning_records(const std::vector<Record>& records);

/// A row per ZeRO stage that had experiments ("z2") and a row "global" with their total; then what
/// is optimal, where it is, its settings, what is faster or smaller (pareto_table()), and how long
/// the tuning took.
///
/// @param records     what the run measured
/// @param best        the optimum, null if there is none
/// @param result_dir  of the optimum
/// @param provisional  the run was interrupted, and the text says so
/// @param notes        what the optimum must be read with
std::string summary_text(const std::vector<Record>& records, Metric metric, const Record* best,
                         const std::string& result_dir, Seconds duration, bool provisional = false,
                         const std::vector<std::string>& notes = {});

/// The text with which Python prints a timedelta: "0:03:25.250000", "1 day, 2:00:00".
std::string duration_text(Seconds duration);

}  // namespace dstune
