// Errors of NCCL.
#pragma once

#include <string>

#include <nccl.h>

#include "core/base/error.hpp"

namespace dstune::cuda {

/// NCCL failed, or a wait for it took too long. The communicator can no longer be used; a new one
/// may work. The message says the call, NCCL's text, its warning, and where.
class NcclError : public Error {
 public:
  using Error::Error;
};

/// NCCL's last warning, which stays whatever succeeds later; "" if there was none.
std::string last_nccl_warning();

/// Nothing if `result` is success or in progress. What the CUDA run time remembers is cleared.
/// @param known_warning  last_nccl_warning() when all was well: only another one is of this error
/// @throws OutOfMemoryError  if NCCL found no device memory
/// @throws DeviceLostError   if the CUDA error below is sticky
/// @throws NcclError         else
void check_nccl(ncclResult_t result, const char* call, const std::string& known_warning,
                const char* file, int line);

}  // namespace dstune::cuda

/// check_nccl() of a call of the table with an NcclCommunicator, with its text and place.
#define DSTUNE_NCCL_CHECK(communicator, call)                           \
  ::dstune::cuda::check_nccl(::dstune::cuda::nccl().call, "nccl" #call, \
                             (communicator).known_warning(), __FILE__, __LINE__)
