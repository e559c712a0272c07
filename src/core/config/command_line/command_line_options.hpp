// The options of the command line: the table that both parsing and --help come from.
#pragma once

#include <boost/program_options/options_description.hpp>

namespace dstune {

/// All options in their groups, in the order of a run.
boost::program_options::options_description command_line_options();

}  // namespace dstune
