// Splits the command line into options, positional words and the training command.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/input/problems.hpp"

namespace dstune {

/// What was given, its values still text.
struct Given {
  std::map<std::string, std::string> options;             ///< long name → value, "" for switches
  std::map<std::string, std::vector<std::string>> lists;  ///< of options that may be repeated
  std::vector<std::string> positional;
  std::vector<std::string> training_command;
  bool has_separator = false;
};

/// Every word that fits no option of command_line_options() is a problem at its flag. Options may
/// stand before and after positional words, as "--name value" or "--name=value"; abbreviations are
/// not guessed; the first "--" ends the options.
Given scan_arguments(const std::vector<std::string>& arguments, Problems& problems);

}  // namespace dstune
