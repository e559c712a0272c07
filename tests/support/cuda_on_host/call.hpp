// What every function of the double does first and last: counts, injected faults, the last error.
#pragma once

#include <optional>

#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"
#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {

/// An error that a call must return.
struct CallError {
  int code = 0;
  bool cuda = true;  ///< a cudaError_t; false: a status of the function's own library
};

/// Counts a call on the calling thread's device. The error that it must return: an injected one, a
/// sticky one, or none.
std::optional<CallError> begin_call(const char* function);

/// What shall go wrong later with what this call enqueues: set by begin_call().
CallEffects& call_effects();

cudaError_t& last_error();

inline cudaError_t keep_error(cudaError_t error) {
  if (error != cudaSuccess) last_error() = error;
  return error;
}

/// Of a function of the runtime. `body` gives the error if there is no fault.
template <class Body>
cudaError_t call(const char* function, Body body) {
  if (const auto error = begin_call(function))
    return keep_error(static_cast<cudaError_t>(error->code));
  return keep_error(body());
}

/// Of a library's function, which tells of CUDA's errors as `cuda_failed`.
template <class Status, class Body>
Status library_call(const char* function, Status cuda_failed, Body body) {
  if (const auto error = begin_call(function))
    return error->cuda ? cuda_failed : static_cast<Status>(error->code);
  return body();
}

/// Of a function that frees or destroys: does so even if it returns an error.
template <class Body>
cudaError_t releasing_call(const char* function, Body body) {
  const auto error = begin_call(function);
  const cudaError_t result = body();
  return keep_error(error ? static_cast<cudaError_t>(error->code) : result);
}

}  // namespace cuda_on_host
