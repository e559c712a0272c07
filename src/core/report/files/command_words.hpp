// The words of a training command: which name its configuration, and how they are replaced.
#pragma once

#include <string>
#include <vector>

namespace dstune {

using Words = std::vector<std::string>;

/// Sets the value of every `flag` ("--flag value" or "--flag=value"); a flag that has none gets
/// one. @returns false if there is no such flag
bool replace_value(Words& words, const std::string& flag, const std::string& value);

/// Does so, or appends the flag with the value.
void set_value(Words& words, const std::string& flag, const std::string& value);

/// Sets the path after each "--deepspeed" that is followed by a .json file: it is a switch in
/// DeepSpeed's own parser and takes the file in Hugging Face's. @returns false if there is none
bool replace_deepspeed_file(Words& words, const std::string& path);

/// Takes "--autotuning run" and its other forms out of a command of DeepSpeed's launcher, which
/// would tune again.
void remove_autotuning(Words& words);

/// The files that `accelerate launch` is told.
struct AccelerateFiles {
  std::string deepspeed;  ///< path of the DeepSpeed JSON
  std::string config;     ///< path of the Accelerate YAML; "": there is none
};

/// Where a command is one of `accelerate launch`: --config_file among the launcher's options
/// becomes `files.config`; without that --deepspeed_config_file becomes `files.deepspeed`. Where
/// they are missing they are put in. Options of the training script stay.
/// @returns whether it is such a command
bool set_accelerate_files(Words& words, const AccelerateFiles& files);

}  // namespace dstune
