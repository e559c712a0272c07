// The MPI library of this process and its version.
#pragma once

#include <string>

namespace dstune {

/// The whole text of MPI_Get_library_version. Needs no MPI_Init.
std::string mpi_library_text();

/// The name and version of the MPI library: "Open MPI v4.1.4".
std::string mpi_library();

}  // namespace dstune
