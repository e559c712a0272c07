// The output of a command: all of it is written, or the command has failed.
#pragma once

#include <string_view>

namespace dstune {

/// Writes all of `text` to standard output, as printable_lines() shows it.
/// @throws Error  e.g. if the disk is full or the reader of a pipe has gone
void print(std::string_view text);

/// To be called once, before any file is opened: a closed standard stream must not become the
/// number of a file that is opened later, a reader that has gone must not kill the process, and
/// what is printed must not get lost in silence.
void secure_standard_streams();

}  // namespace dstune
