// NCCL's version and the texts of its errors.
#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/include/nccl.h"
#include "tests/support/cuda_on_host/machine_state.hpp"

ncclResult_t ncclGetVersion(int* version) {
  cuda_on_host::begin_call("ncclGetVersion");
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  const cuda_on_host::Locked locked;
  const auto device = static_cast<std::size_t>(cuda_on_host::current_device());
  return cuda_on_host::state().devices.at(device).nccl_warning;
}
