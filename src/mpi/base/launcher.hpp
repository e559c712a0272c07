// What started this process.
#pragma once

#include <string>

namespace dstune {

/// Where Open MPI keeps what it needs while it runs, and what an mpirun that is killed leaves
/// behind:
/// ".../ompi.HOST.USER/pid.<process id of mpirun>"; "" under another launcher.
std::string launcher_folder();

}  // namespace dstune
