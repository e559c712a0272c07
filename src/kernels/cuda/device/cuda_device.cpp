#include "kernels/cuda/device/cuda_device.hpp"

#include <algorithm>
#include <chrono>

#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

CudaDevice::CudaDevice(Gpu& gpu, MatrixProducts& products, Bytes memory_limit, int threads)
    : Device(memory_limit),
      threads_(std::max(threads, 1)),
      gpu_(gpu),
      products_(products),
      backlog_(gpu),
      origin_(gpu.events().take()) {
  memory().take_segments_from(gpu_.segments());
  DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(origin_), gpu_.stream(Stream::compute)));
}

cudaStream_t CudaDevice::stream_for(Stream which, int launches) {
  backlog_.make_room(which, [this] { meanwhile(); });
  backlog_.count(which, launches);
  return gpu_.stream(which);
}

Seconds CudaDevice::now() const {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Python would launch nothing meanwhile, and neither does this; what is queued goes on.
void CudaDevice::spend_host_time(Seconds time) {
  const Seconds end = now() + time;
  while (now() < end) tick();
}

std::optional<DeviceReading> CudaDevice::reading() {
  if (gpu_.monitor() == nullptr) return std::nullopt;
  return gpu_.monitor()->read();
}

void* CudaDevice::do_allocate(MemoryCategory category, Bytes size) {
  void* data = memory().holds_segments() ? gpu_.allocate_beside_segments(size, current_stream())
                                         : gpu_.allocate(size, current_stream(), memory().limit());
  if (data == nullptr) {
    throw OutOfMemoryError(category, size, gpu_.in_use(), memory().limit());
  }
  return data;
}

void CudaDevice::do_free(void* data, Bytes /*size*/) noexcept { gpu_.free(data); }

// A buffer that is given back records too, where nothing may be thrown: the next wait does it, and
// what is queued next makes room.
void CudaDevice::do_record(Stream stream, Event& event) {
  try {
    backlog_.count(stream, 1);
    event.handle = gpu_.events().take();
    DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(event.handle), gpu_.stream(stream)));
  } catch (...) {
    if (!failed_) failed_ = std::current_exception();
  }
}

void CudaDevice::throw_what_failed() const {
  if (failed_) std::rethrow_exception(failed_);
}

void CudaDevice::do_wait(Stream stream, const Event& event) {
  throw_what_failed();
  if (!event.handle) return;
  DSTUNE_CUDA_CHECK(cudaStreamWaitEvent(stream_for(stream, 1), EventPool::of(event.handle), 0));
}

void CudaDevice::meanwhile() const {
  tick();
  if (on_wait_) on_wait_();
}

void CudaDevice::do_host_wait(const Event& event) {
  throw_what_failed();
  if (!event.handle) return;
  gpu_.wait_for(EventPool::of(event.handle), [this] { meanwhile(); });
}

// What is read comes after `end` in its stream.
float CudaDevice::do_read_scalar(Tensor scalar, const Event& /*end*/) {
  throw_what_failed();
  float value = 0;
  read(scalar, {&value, 1});
  return value;
}

void CudaDevice::do_synchronize() {
  throw_what_failed();
  gpu_.wait_for_streams([this] { meanwhile(); });
}

bool CudaDevice::has_passed(const Event& event) const {
  if (!event.handle) return true;
  const bool passed = cudaEventQuery(EventPool::of(event.handle)) != cudaErrorNotReady;
  cudaGetLastError();
  return passed;
}

// CUDA says it in float milliseconds, which are exact to 0.5 us for some seconds only.
Seconds CudaDevice::time_of(const Event& event) const {
  constexpr Seconds kExact = 4;
  if (!event.handle) return 0;
  // The end of a wait of the host is queued after it.
  gpu_.wait_for(EventPool::of(event.handle), [this] { meanwhile(); });
  float milliseconds = 0;
  DSTUNE_CUDA_CHECK(
      cudaEventElapsedTime(&milliseconds, EventPool::of(origin_), EventPool::of(event.handle)));
  const Seconds time = origin_time_ + static_cast<Seconds>(milliseconds) * 1e-3;
  if (time - origin_time_ > kExact) {
    origin_ = event.handle;
    origin_time_ = time;
  }
  return time;
}

}  // namespace dstune::cuda
