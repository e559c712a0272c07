// Checks every MPI call: communicators return errors, and check_mpi() turns them into exceptions.
#pragma once

#include "core/base/error.hpp"

namespace dstune {

/// An MPI call failed. The message names the call, the reason, the file and the line.
class MpiError : public Error {
 public:
  using Error::Error;
};

/// @throws MpiError  if `code` is not MPI_SUCCESS
void check_mpi(int code, const char* call, const char* file, int line);

}  // namespace dstune

#define DSTUNE_MPI_CHECK(call) ::dstune::check_mpi((call), #call, __FILE__, __LINE__)
