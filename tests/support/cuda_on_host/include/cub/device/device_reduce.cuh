// CUB's reduction of a whole range, as far as it is used, by one thread.
#pragma once
#pragma GCC system_header

#include "../on_host.cuh"

namespace cub {

namespace on_host {

/// `none` must be what f leaves as it is.
template <class Input, class Output, class F, class T>
void reduce_kernel(void* storage, Input in, Output out, std::int64_t count, F f, T none) {
  spoil(storage);
  out[0] = reduce(in, 0, count, f, none);
}

}  // namespace on_host

struct DeviceReduce {
  template <class Input, class Output, class F, class T>
  static cudaError_t Reduce(void* storage, std::size_t& bytes, Input in, Output out,
                            std::int64_t count, F f, T none, cudaStream_t stream) {
    return on_host::run(storage, bytes, stream, on_host::reduce_kernel<Input, Output, F, T>, in,
                        out, count, f, none);
  }
};

}  // namespace cub
