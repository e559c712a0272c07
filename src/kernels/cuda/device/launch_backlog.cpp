#include "kernels/cuda/device/launch_backlog.hpp"

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/gpu.hpp"

namespace dstune::cuda {

void LaunchBacklog::make_room(Stream stream, const std::function<void()>& meanwhile) {
  Queue& queue = streams_[static_cast<std::size_t>(stream)];
  if (queue.launches < kStride) return;
  auto mark = gpu_.events().take_untimed();
  DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(mark), gpu_.stream(stream)));
  queue.marks.push_back(std::move(mark));
  queue.launches = 0;
  while (queue.marks.size() > kMarks) {
    gpu_.wait_for(EventPool::of(queue.marks.front()), meanwhile);
    queue.marks.pop_front();
  }
}

}  // namespace dstune::cuda
