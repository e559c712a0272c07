// Ranks of NCCL as threads with a device, a stream and a communicator each, for tests.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace cuda_on_host {

struct TestRank {
  int rank = 0;
  int size = 1;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

/// Runs `body` in one thread per rank, each on its own device, and waits for all. Without a
/// communicator if there is no id.
inline void run_ranks(int size, const std::function<void(TestRank&)>& body,
                      bool with_communicator = true) {
  set_up({.devices = size});
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  std::vector<std::thread> threads;
  for (int number = 0; number < size; ++number) {
    threads.emplace_back([&, number] {
      check(cudaSetDevice(number));
      const TestStream stream;
      TestRank rank{number, size, nullptr, stream.get()};
      if (with_communicator) ncclCommInitRank(&rank.comm, size, id, number);
      body(rank);
      if (rank.comm != nullptr) ncclCommDestroy(rank.comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Polls a non-blocking communicator until it is no longer in progress.
inline ncclResult_t settle(ncclComm_t comm) {
  ncclResult_t result = ncclInProgress;
  while (result == ncclInProgress) {
    if (const ncclResult_t failed = ncclCommGetAsyncError(comm, &result); failed != ncclSuccess)
      return failed;
    std::this_thread::yield();
  }
  return result;
}

}  // namespace cuda_on_host
