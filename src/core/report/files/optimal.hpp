// The files that the user takes away: ds_config_optimal.json and cmd_optimal.txt.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/experiment/experiment.hpp"
#include "core/report/files/emitted.hpp"

namespace dstune {

/// The DeepSpeed JSON of `best` for `ranks` data-parallel ranks: complete, without "autotuning" and
/// "dstune", with train_batch_size = micro-batch * accumulation * ranks, in stage 3 the leaf
/// modules of models with experts where the user's file names none, and every default of the
/// release that was tuned for which another release does not have (Knob::defaults).
///
/// @param left_to_trainer  JSON pointers of what is "auto" in it, as in the user's file
/// @throws std::invalid_argument  if its JSON was not checked (make_step_config)
json::object optimal_config(const Experiment& best, int ranks,
                            const std::vector<std::string>& left_to_trainer = {});

/// The words of the user's training command with the tuned values.
///
/// Each mapping (key of the DeepSpeed JSON, at any depth → flag; blanks around both are ignored)
/// replaces the value of its flag ("--flag value" or "--flag=value") or appends the flag. A key
/// that the configuration lacks, or whose value is "auto" or a text that would be a flag itself,
/// changes nothing. So does each of the training arguments. The path after --deepspeed_config, or
/// after --deepspeed if that is followed by a .json file, becomes `files.deepspeed`; `accelerate
/// launch` gets the YAML, or the JSON where there is none; where the command names no
/// configuration, "--deepspeed_config PATH" is appended.
/// "--autotuning" of DeepSpeed's launcher goes.
std::vector<std::string> optimal_words(const std::vector<std::string>& command,
                                       const json::object& arg_mappings, const json::object& config,
                                       const OptimumFiles& files);

/// `words` as one line that bash reads back.
std::string shell_line(std::vector<std::string> words);

/// `word` as a POSIX shell reads it back: quoted only if it must be. One with control characters,
/// or others that printable() does not leave as they are, is quoted as bash alone reads it.
std::string shell_quoted(const std::string& word);

}  // namespace dstune
