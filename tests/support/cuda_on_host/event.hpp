// An event: the latest of its records.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>

#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"

namespace cuda_on_host {

/// One cudaEventRecord(). Its address is the token of what happened before it.
struct EventRecord {
  bool done = false;
  std::condition_variable is_done;  ///< of many streams few wait for one record
  std::chrono::steady_clock::time_point time;
};

}  // namespace cuda_on_host

struct CUevent_st {
  bool timed = true;
  std::shared_ptr<cuda_on_host::EventRecord> latest;
};
