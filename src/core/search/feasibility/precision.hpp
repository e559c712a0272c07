// The precision where the file leaves it to the Trainer ("auto"): what the machine says of it.
#pragma once

#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/schedule/worker_info.hpp"

namespace dstune {

/// What must be asked where config.open_precision is a guess on these workers: on CPUs, and for
/// bf16 on GPUs without it; the text has what to say for each way to train. "" where nothing is. A
/// plan, which knows no workers, guesses and says so.
std::string open_precision_question(const TuningConfig& config, const std::string& backend,
                                    const std::vector<WorkerInfo>& workers);

/// @throws ConfigError  with open_precision_question(), if there is one
void check_open_precision(const TuningConfig& config, const std::string& backend,
                          const std::vector<WorkerInfo>& workers);

}  // namespace dstune
