#include "mpi/base/library.hpp"

#include <string_view>

#include <mpi.h>

#include "core/base/text.hpp"

namespace dstune {

std::string mpi_library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(trim(text));
}

std::string mpi_library_name(const std::string& text) {
  std::string name(trim(text.substr(0, text.find_first_of(",\n"))));
  // MPICH's first line is "MPICH Version:\t4.0.2".
  constexpr std::string_view kVersion = " Version:";
  if (const auto place = name.find(kVersion); place != std::string::npos) {
    const std::string number(trim(name.substr(place + kVersion.size())));
    name.replace(place, std::string::npos, concat(" ", number));
  }
  return name;
}

std::string mpi_library() { return mpi_library_name(mpi_library_text()); }

bool is_open_mpi() { return mpi_library_text().starts_with("Open MPI"); }

}  // namespace dstune
