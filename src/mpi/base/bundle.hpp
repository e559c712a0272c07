// The Open MPI that lies beside the program in a bundle (scripts/bundle.sh).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dstune {

/// The variables by which the Open MPI of a bundle finds its files, and their values, for a program
/// at `path`; empty if the program is not in a bundle.
std::vector<std::pair<std::string, std::string>> bundle_variables(const std::string& path);

/// Sets the bundle_variables() of this process, whatever they were, because its libraries are the
/// bundle's. In a bundle HOME is set too if it is not. Call it before any function of MPI, while
/// there is only one thread.
void use_bundled_mpi();

}  // namespace dstune
