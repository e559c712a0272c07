// Which MPI this is.
#pragma once

#include <string>

namespace dstune {

/// All that MPI_Get_library_version says. Needs no MPI_Init.
std::string mpi_library_text();

/// The name and version of that library: "Open MPI v4.1.4".
std::string mpi_library();

}  // namespace dstune
