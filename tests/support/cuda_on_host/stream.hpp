// A stream: a thread that runs what is enqueued, in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"

namespace cuda_on_host {

struct Task {
  std::string name;
  std::function<void()> work;
};

/// Aborts unless `stream` is one that lives: the default stream is refused.
void require_stream(cudaStream_t stream);

/// What the host did so far happens before the work; nothing else does, but what the stream did.
/// Hangs before the work if the present call shall (call_effects()).
void enqueue(cudaStream_t stream, std::string name, std::function<void()> work);

/// Waits for all that was enqueued so far; it happens before what the caller does next.
void synchronise(cudaStream_t stream);

/// Of a device, all streams.
void synchronise_device(int device);
/// The same wait, but nothing happens before what the caller does next.
void drain_device(int device);

/// Joins the threads of the streams that were destroyed: of those that ended, or of all, which
/// waits.
void join_closed_streams(bool all);

}  // namespace cuda_on_host

/// All members are under the double's lock.
struct CUstream_st {
  int device = 0;
  int priority = 0;
  int number = 0;  ///< of those that its device has made
  std::thread worker;
  std::condition_variable arrived;   ///< a task to run
  std::condition_variable advanced;  ///< a task has been run
  std::deque<std::unique_ptr<cuda_on_host::Task>> tasks;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  bool closing = false;
  bool ended = false;
  std::vector<std::string> log;
};
