#include "kernels/cuda/device/gpu.hpp"

#include <algorithm>
#include <thread>

#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

namespace {

std::unique_ptr<GpuMonitor> open_monitor(int index) {
  std::array<char, 32> bus_id{};
  DSTUNE_CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index));
  return GpuMonitor::open(bus_id.data());
}

}  // namespace

Gpu::Gpu(int index) : index_(index) {
  DSTUNE_CUDA_CHECK(cudaSetDevice(index));
  cudaDeviceProp properties{};
  DSTUNE_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  name_ = properties.name;
  multiprocessors_ = properties.multiProcessorCount;
  monitor_ = open_monitor(index);
  for (StreamHandle& stream : streams_) stream = make_stream();
  for (DeviceMemory& scratch : scratch_) scratch = make_device_memory(kScratch);
  staging_ = make_pinned_memory(kStaging);
  note_free_memory();
}

void* Gpu::allocate(Bytes size, Stream stream, Bytes limit) {
  take_memory(limit);
  const auto place = arena_->take(size, stream);
  if (!place) return nullptr;
  try {
    order(stream, place->wait_for);
  } catch (...) {
    arena_->give_back(place->offset, place->wait_for);
    throw;
  }
  return static_cast<std::byte*>(piece_.get()) + place->offset;
}

void Gpu::take_memory(Bytes limit) {
  if (arena_ && piece_limit_ == limit) return;
  release_memory();
  const Bytes size = piece_size(limit, device_space().free);
  piece_ = make_device_memory(size);
  piece_limit_ = limit;
  arena_.emplace(size);
}

// More than the limit can be had at most: an experiment that must fit is not to fail for gaps.
Bytes Gpu::piece_size(Bytes limit, Bytes free) const {
  const Bytes most = most_for_piece(free, free_at_start_, nccl_);
  return std::min(with_slack(limit), most) / Arena::kAlignment * Arena::kAlignment;
}

void Gpu::note_free_memory() { free_at_start_ = device_space().free; }

void Gpu::leave_to_nccl(const NcclMemory& nccl) {
  nccl_ = nccl;
  if (!arena_ || in_use() > 0) return;
  const Bytes free = device_space().free + arena_->size();
  if (piece_size(piece_limit_, free) > arena_->size()) release_memory();
}

void Gpu::order(Stream stream, const StreamSet& after) {
  for (std::size_t other = 0; other < kStreams; ++other) {
    if (!after[other]) continue;
    const auto end = events_.take_untimed();
    DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(end), streams_[other].get()));
    DSTUNE_CUDA_CHECK(cudaStreamWaitEvent(this->stream(stream), EventPool::of(end), 0));
  }
}

void Gpu::free(void* data) noexcept {
  arena_->give_back(
      static_cast<Bytes>(static_cast<std::byte*>(data) - static_cast<std::byte*>(piece_.get())));
}

void Gpu::release_memory() noexcept {
  piece_.reset();
  arena_.reset();
}

void Gpu::wait_for(cudaEvent_t event, const std::function<void()>& meanwhile) const {
  for (;;) {
    const cudaError_t state = cudaEventQuery(event);
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) DSTUNE_CUDA_CHECK(state);
    cudaGetLastError();  // "not ready" is remembered as an error
    meanwhile();
    std::this_thread::yield();
  }
}

void Gpu::wait_for_streams(const std::function<void()>& meanwhile) {
  for (const StreamHandle& stream : streams_) {
    const auto end = events_.take_untimed();
    DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(end), stream.get()));
    wait_for(EventPool::of(end), meanwhile);
  }
  forget_streams();
}

void Gpu::forget_streams() noexcept {
  if (arena_) arena_->forget_streams();
}

}  // namespace dstune::cuda
