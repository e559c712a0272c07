// What the user takes away: ds_config_optimal.json and cmd_optimal.txt.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// The DeepSpeed JSON of `best` for `ranks` data-parallel ranks: complete, without "autotuning" and
/// "dstune", with train_batch_size = micro-batch * accumulation * ranks.
///
/// @throws std::invalid_argument  if its JSON was not checked (make_step_config)
json::object optimal_config(const Experiment& best, int ranks);

/// The user's training command with the tuned values, as one shell line.
///
/// Each mapping (key of the DeepSpeed JSON, at any depth → flag; blanks around both are ignored)
/// replaces the value of its flag ("--flag value" or "--flag=value") or appends the flag. A key
/// that the configuration lacks, or "auto", changes nothing. The path after --deepspeed_config, or
/// after --deepspeed if that is followed by a .json file, becomes `config_path`; where the command
/// names no configuration, "--deepspeed_config PATH" is appended.
std::string optimal_command(const std::vector<std::string>& command,
                            const json::object& arg_mappings, const json::object& config,
                            const std::string& config_path);

/// `word` as a POSIX shell reads it back: quoted only if it must be.
std::string shell_quoted(const std::string& word);

}  // namespace dstune
