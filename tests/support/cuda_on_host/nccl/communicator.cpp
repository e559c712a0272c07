// NCCL's communicators: asked, finished, aborted.
#include <algorithm>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/group.hpp"
#include "tests/support/cuda_on_host/nccl/processes.hpp"

namespace cuda_on_host {
namespace {

DeviceState& device_of(const Rank& rank) {
  return state().devices.at(static_cast<std::size_t>(rank.device));
}

}  // namespace

bool take_memory(Rank& rank, std::size_t bytes) {
  if (bytes > state().machine.bytes - device_of(rank).used) {
    device_of(rank).nccl_warning = "Cuda failure 'out of memory'";
    return false;
  }
  rank.bytes += bytes;
  device_of(rank).used += bytes;
  return true;
}

bool ready(const Rank& rank) {
  if (rank.clique == nullptr) return false;
  if (!rank.clique->folder.empty() && !rank.clique->complete()) look_for_processes(*rank.clique);
  return rank.clique->complete() && !rank.clique->has_shared_gpu;
}

bool is_duplicate(const Rank& rank) {
  if (rank.clique == nullptr || !rank.clique->complete() || !rank.clique->has_shared_gpu) {
    return false;
  }
  const auto& gpus = rank.clique->gpus;
  const std::string& own = gpus.at(rank.rank);
  return std::count_if(gpus.begin(), gpus.end(),
                       [&](const auto& there) { return there.second == own; }) > 1;
}

namespace {

ncclResult_t refuse_duplicate(const Rank& rank) {
  device_of(rank).nccl_warning = "Duplicate GPU detected";
  return ncclInvalidUsage;
}

/// The handle goes; what streams still run keeps the rank.
void release(ncclComm_t comm) {
  const Locked locked;
  Rank& rank = *comm->rank;
  device_of(rank).used -= std::min(device_of(rank).used, rank.bytes);
  if (rank.clique != nullptr && !rank.clique->complete())
    rank.clique->size = -1;  // it will never be
  --state().communicators;
  delete comm;
}

ncclResult_t async_state(Rank& rank) {
  {
    const Locked locked;
    if (rank.async_error != ncclSuccess) return rank.async_error;
    if (!ready(rank)) return is_duplicate(rank) ? refuse_duplicate(rank) : ncclInProgress;
    if (rank.finalizing && rank.unfinished > 0) return ncclInProgress;
    if (rank.to_launch.empty()) {
      rank.polled = true;
      return ncclSuccess;
    }
  }
  launch_pending(rank);
  return ncclInProgress;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

/// Once it is polled to success, all work of the communicator is over.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return library_call("ncclCommFinalize", ncclUnhandledCudaError, [&] {
    Rank& rank = *comm->rank;
    launch_pending(rank);
    Locked locked;
    rank.finalizing = true;
    if (!rank.blocking) return ncclInProgress;
    locked.wait_until([&] { return rank.unfinished == 0; });
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const auto error = begin_call("ncclCommDestroy");
  launch_pending(*comm->rank);
  {
    Locked locked;
    locked.wait_until([&] { return comm->rank->unfinished == 0; });
  }
  release(comm);
  return error && !error->cuda ? static_cast<ncclResult_t>(error->code) : ncclSuccess;
}

/// Its own streams go on; those of other ranks that wait for this one do not.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const auto error = begin_call("ncclCommAbort");
  {
    Locked locked;
    const std::uint64_t releases = state().hang_releases;
    const bool hangs = std::exchange(call_effects(), {}).hangs;
    locked.wait_until([&] { return !hangs || state().hang_releases != releases; });
    Rank& rank = *comm->rank;
    rank.aborted = true;
    rank.to_launch.clear();
    state().changed.notify_all();
  }
  release(comm);
  return error && !error->cuda ? static_cast<ncclResult_t>(error->code) : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return library_call("ncclCommGetAsyncError", ncclUnhandledCudaError, [&] {
    *asyncError = async_state(*comm->rank);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return library_call("ncclCommCount", ncclUnhandledCudaError, [&] {
    const Locked locked;
    if (!ready(*comm->rank)) return ncclInvalidArgument;
    *count = comm->rank->clique->size;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return library_call("ncclCommUserRank", ncclUnhandledCudaError, [&] {
    const Locked locked;
    if (!ready(*comm->rank)) return ncclInvalidArgument;
    *rank = comm->rank->rank;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return library_call("ncclCommCuDevice", ncclUnhandledCudaError, [&] {
    *device = comm->rank->device;
    return ncclSuccess;
  });
}
