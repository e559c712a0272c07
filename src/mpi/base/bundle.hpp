// The Open MPI that lies beside the program in a bundle (scripts/bundle.sh).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace dstune {

/// The variables by which the Open MPI of a bundle finds itself, and their values, for a program at
/// `path`; empty if no bundle is around it.
std::vector<std::pair<std::string, std::string>> bundle_variables(const std::string& path);

/// Sets them for this process, whatever they were: its libraries are the bundle's. In a bundle HOME
/// is set too, if it is not. To be called before anything of MPI, while there is one thread.
void use_bundled_mpi();

}  // namespace dstune
