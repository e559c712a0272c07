// Which MPI this is.
#pragma once

#include <string>

namespace dstune {

/// All that MPI_Get_library_version says. Needs no MPI_Init.
std::string mpi_library_text();

/// Of that the name and version: "Open MPI v4.1.4".
std::string mpi_library();

}  // namespace dstune
