#include "kernels/cuda/collectives/ending_communicators.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

#include "core/base/log.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

void call_ignoring_exceptions(const std::function<void()>& function) noexcept {
  try {
    if (function) function();
  } catch (const std::exception& error) {
    log_debug(error.what());
  }
}

}  // namespace

// NCCL restores the current GPU of the thread that aborts, which for a new thread is GPU 0: there
// each process would get a context of its own. Without a thread they stay, and wait() ends when the
// promise is broken.
void EndingCommunicators::add(std::vector<CommunicatorCell> communicators) noexcept {
  call_ignoring_exceptions([&] {
    std::promise<void> gone;
    ends_.push_back(gone.get_future());
    int gpu = 0;
    cudaGetDevice(&gpu);
    std::thread([gpu, all = std::move(communicators), done = std::move(gone)]() mutable {
      cudaSetDevice(gpu);
      for (const CommunicatorCell& cell : all) {
        if (*cell != nullptr) nccl().CommAbort(*cell);
      }
      done.set_value();
    }).detach();
  });
}

bool EndingCommunicators::wait(Seconds limit, const std::function<void()>& meanwhile) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{1};
  const auto latest = Clock::now() + std::chrono::duration<Seconds>(limit);
  const auto ends = std::exchange(ends_, {});
  return std::all_of(ends.begin(), ends.end(), [&](const std::future<void>& end) {
    while (end.wait_for(kLook) != std::future_status::ready) {
      if (Clock::now() >= latest) return false;
      call_ignoring_exceptions(meanwhile);
    }
    return true;
  });
}

}  // namespace dstune::cuda
