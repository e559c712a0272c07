// CUB's sums of segments, as far as they are used, by one thread.
#pragma once
#pragma GCC system_header

#include <type_traits>

#include "../on_host.cuh"

namespace cub {

namespace on_host {

template <class Input, class Output, class Begins, class Ends>
void segmented_sum_kernel(void* storage, Input in, Output out, std::int64_t segments, Begins begins,
                          Ends ends) {
  using T = std::remove_cvref_t<decltype(in[0])>;
  spoil(storage);
  for (std::int64_t i = 0; i < segments; ++i) {
    out[i] = reduce(
        in, begins[i], ends[i], [](T a, T b) { return a + b; }, T{});
  }
}

}  // namespace on_host

struct DeviceSegmentedReduce {
  template <class Input, class Output, class Begins, class Ends>
  static cudaError_t Sum(void* storage, std::size_t& bytes, Input in, Output out,
                         std::int64_t segments, Begins begins, Ends ends, cudaStream_t stream) {
    return on_host::run(storage, bytes, stream,
                        on_host::segmented_sum_kernel<Input, Output, Begins, Ends>, in, out,
                        segments, begins, ends);
  }
};

}  // namespace cub
