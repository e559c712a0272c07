#include "mpi/base/check.hpp"

#include <string_view>

#include <mpi.h>

#include "core/base/text.hpp"

namespace dstune {

void check_mpi(int code, const char* call, const char* file, int line) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length = 0;
  MPI_Error_string(code, reason, &length);
  const std::string_view text(call);
  const std::string_view path(file);
  const auto root = path.rfind("src/");
  throw MpiError(concat(text.substr(0, text.find('(')), " failed: ", reason, " (",
                        root == std::string_view::npos ? path : path.substr(root), ":", line, ")"));
}

}  // namespace dstune
