// The MPI library of this process and its version.
#pragma once

#include <string>

namespace dstune {

/// The whole text of MPI_Get_library_version. Needs no MPI_Init.
std::string mpi_library_text();

/// The name and version in such a text: "Open MPI v4.1.4", "MPICH 4.0.2".
std::string mpi_library_name(const std::string& text);

/// The name and version of the MPI library of this process.
std::string mpi_library();

/// Whether the MPI library of this process is Open MPI. Needs no MPI_Init.
bool is_open_mpi();

}  // namespace dstune
