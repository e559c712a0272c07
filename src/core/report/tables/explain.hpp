// Where the time and the memory of one experiment go: its ledger as a readable account.
#pragma once

#include <string>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// Times of the step, its collectives, passes over parameters and gradients, waits of the host,
/// transfers, gathered parameters (stage 3), memory and what the devices say of their clocks and
/// power, as Markdown tables; of an experiment without numbers its reason. A dry run, which has no
/// times, has no columns for them.
std::string explain(const Experiment& experiment, const Outcome& outcome);

/// The differences between two experiments: settings of the DeepSpeed JSON, then times,
/// communication, passes and memory side by side; the latter only if both were measured.
/// @param title  what `other` is: "the best"
std::string explain_differences(const Record& record, const Record& other,
                                const std::string& title);

}  // namespace dstune
