// A stream, arrays and launches for the double's own tests. Errors end the test.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace cuda_on_host {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorName(error));
}

class TestStream {
 public:
  TestStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~TestStream() { cudaStreamDestroy(stream_); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronise() const { check(cudaStreamSynchronize(stream_)); }

  template <class... Types, class... Values>
  void launch(dim3 grid, dim3 block, void (*kernel)(Types...), Values&&... values) const {
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream_;
    check(cudaLaunchKernelEx(&config, kernel, std::forward<Values>(values)...));
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class TestEvent {
 public:
  TestEvent() { check(cudaEventCreateWithFlags(&event_, cudaEventDefault)); }
  ~TestEvent() { cudaEventDestroy(event_); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// In device memory, filled and read by the host's thread: not while a stream uses it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : DeviceArray(std::vector<T>(count)) {}
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    check(cudaMalloc(&data_, count_ * sizeof(T)));
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    check(cudaMemcpy(result.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace cuda_on_host
