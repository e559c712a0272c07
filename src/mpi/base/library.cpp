#include "mpi/base/library.hpp"

#include <mpi.h>

#include "core/base/text.hpp"

namespace dstune {

std::string mpi_library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(trim(text));
}

std::string mpi_library() {
  const std::string text = mpi_library_text();
  return std::string(trim(text.substr(0, text.find_first_of(",\n"))));
}

}  // namespace dstune
