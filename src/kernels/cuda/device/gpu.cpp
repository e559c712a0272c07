#include "kernels/cuda/device/gpu.hpp"

#include <algorithm>
#include <functional>
#include <thread>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/gpu_list.hpp"

namespace dstune::cuda {

namespace {

std::unique_ptr<GpuMonitor> open_monitor(int index, const std::string& name) {
  std::array<char, 32> bus_id{};
  DSTUNE_CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index));
  return GpuMonitor::open(bus_id.data(), is_mig_instance(name));
}

}  // namespace

Gpu::Gpu(int index) : index_(index) {
  DSTUNE_CUDA_CHECK(cudaSetDevice(index));
  cudaDeviceProp properties{};
  DSTUNE_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  name_ = properties.name;
  multiprocessors_ = properties.multiProcessorCount;
  monitor_ = open_monitor(index, name_);
  for (StreamHandle& stream : streams_) stream = make_stream();
  for (DeviceMemory& scratch : scratch_) scratch = make_device_memory(kScratch);
  staging_ = make_pinned_memory(kStaging);
  open_segments();
  note_free_memory();
}

void Gpu::open_segments() {
  why_no_segments_ = VirtualMemory::why_unavailable(index_);
  if (!why_no_segments_.empty()) return;
  segments_.emplace(index_, [this](Bytes held) { return most_for(device_space().free + held); });
  beside_segments_.emplace(kBesideSegments);
}

void* Gpu::allocate(Bytes size, Stream stream, Bytes limit) {
  take_piece(limit);
  return take(*piece_, size, stream);
}

void* Gpu::allocate_beside_segments(Bytes size, Stream stream) {
  return take(*beside_segments_, size, stream);
}

void* Gpu::take(Piece& piece, Bytes size, Stream stream) {
  const auto place = piece.arena.take(size, stream);
  if (!place) return nullptr;
  try {
    order(stream, place->wait_for);
  } catch (...) {
    piece.arena.give_back(place->offset, place->wait_for);
    throw;
  }
  return piece.begin() + place->offset;
}

bool Gpu::Piece::holds(const void* data) const noexcept {
  const std::less<const void*> lies_before;
  return !lies_before(data, begin()) && lies_before(data, begin() + arena.size());
}

void Gpu::take_piece(Bytes limit) {
  if (piece_ && piece_limit_ == limit) return;
  release_memory();
  piece_.emplace(piece_size(limit, device_space().free));
  piece_limit_ = limit;
}

Bytes Gpu::most_for(Bytes free) const { return most_for_buffers(free, free_at_start_, nccl_); }

// More than the limit can be had at most: an experiment that must fit is not to fail for gaps.
Bytes Gpu::piece_size(Bytes limit, Bytes free) const {
  return std::min(with_slack(limit), most_for(free)) / Arena::kAlignment * Arena::kAlignment;
}

void Gpu::note_free_memory() { free_at_start_ = device_space().free; }

void Gpu::leave_to_nccl(const NcclMemory& nccl) {
  nccl_ = nccl;
  if (!piece_ || in_use() > 0) return;
  const Bytes free = device_space().free + piece_->arena.size();
  if (piece_size(piece_limit_, free) > piece_->arena.size()) release_memory();
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
  const bool is_beside = beside_segments_ && beside_segments_->holds(data);
  Piece& piece = is_beside ? *beside_segments_ : *piece_;
  piece.arena.give_back(static_cast<Bytes>(static_cast<std::byte*>(data) - piece.begin()));
}

Bytes Gpu::in_use() const noexcept {
  Bytes bytes = segments_ ? segments_->held() : 0;
  for (const std::optional<Piece>* piece : {&piece_, &beside_segments_}) {
    if (*piece) bytes += (*piece)->arena.in_use();
  }
  return bytes;
}

void Gpu::release_memory() noexcept { piece_.reset(); }

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
  for (std::optional<Piece>* piece : {&piece_, &beside_segments_}) {
    if (*piece) (*piece)->arena.forget_streams();
  }
}

}  // namespace dstune::cuda
