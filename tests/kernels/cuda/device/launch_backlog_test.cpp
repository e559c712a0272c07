// The host never waits inside a launch, on CUDA on the host.
#include "kernels/cuda/device/launch_backlog.hpp"

#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/embedding.hpp"
#include "kernels/cuda/base/check.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::cuda::launch_backlog_test {
namespace {

/// Work that goes on when it is told to, or when somebody has found a queue full.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { DSTUNE_CUDA_CHECK(cudaLaunchHostFunc(stream, wait, this)); }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() { is_open_ = true; }

 private:
  static void wait(void* gate) {
    const auto& own = *static_cast<Gate*>(gate);
    while (!own.is_open_ && cuda_on_host::full_queues() == 0) std::this_thread::yield();
  }

  std::atomic<bool> is_open_ = false;
};

class LaunchBacklogTest : public OnHostTest {
 protected:
  LaunchBacklogTest() { own_.device.run(FillZero{numbers()}); }

  CudaDevice& device() { return own_.device; }
  Tensor numbers() { return numbers_.tensor(DType::fp32).slice(0, kCount); }
  Tensor others() { return numbers_.tensor(DType::fp32).slice(kCount, kCount); }
  Tensor tokens() { return tokens_.tensor(DType::int64); }

  /// Queues `work` often enough to fill the queue of `stream`, which does nothing meanwhile but
  /// when the host waits.
  /// @returns times that the host has looked whether it may go on
  int queue(Stream stream, int times, const std::function<void()>& work) {
    device().synchronize();
    int looks = 0;
    Gate gate(own_.gpu.stream(stream));
    device().on_tick([&] {
      ++looks;
      gate.open();
    });
    for (int i = 0; i < times; ++i) work();
    device().on_tick({});
    gate.open();
    device().synchronize();
    return looks;
  }
  int queue(int times, const std::function<void()>& work) {
    return queue(Stream::compute, times, work);
  }

  static constexpr std::int64_t kCount = 8;
  static constexpr int kTooMany = 1500;

  RankGpu own_{0};
  Buffer numbers_ = make_buffer(own_.device, MemoryCategory::temporaries, 2 * kCount, DType::fp32);
  Buffer tokens_ = make_buffer(own_.device, MemoryCategory::temporaries, kCount, DType::int64);
};

TEST_F(LaunchBacklogTest, WhoQueuesTooMuchWaitsAndAnswersMeanwhile) {
  const int looks = queue(kTooMany, [&] { device().run(FillZero{numbers()}); });

  EXPECT_GT(looks, 0);
  EXPECT_EQ(cuda_on_host::full_queues(), 0U);
}

TEST_F(LaunchBacklogTest, NobodyWaitsBeforeItIsNecessary) {
  const int looks = queue(LaunchBacklog::kMost - 1, [&] { device().run(FillZero{numbers()}); });

  EXPECT_EQ(looks, 0);
}

TEST_F(LaunchBacklogTest, AWaitThatIsInVainCanBeGivenUp) {
  Gate gate(own_.gpu.stream(Stream::compute));
  device().on_tick([] { throw ExperimentAborted("by rank 0"); });

  EXPECT_THROW(
      {
        for (int i = 0; i < kTooMany; ++i) device().run(FillZero{numbers()});
      },
      ExperimentAborted);
  device().on_tick({});
  gate.open();
  device().synchronize();
}

TEST_F(LaunchBacklogTest, EventsAreCountedToo) {
  queue(kTooMany / 3, [&] {
    device().run(FillZero{numbers()});
    for (int i = 0; i < 3; ++i) device().record(Stream::compute);
  });
  queue(Stream::gather, kTooMany, [&] {
    device().run(FillZero{numbers()});
    device().wait(Stream::gather, device().record(Stream::compute));
  });

  EXPECT_EQ(cuda_on_host::full_queues(), 0U);
}

TEST_F(LaunchBacklogTest, OperationsOfManyLaunchesAreCountedAsMany) {
  const GeluSaved saved{others(), others(), others()};
  queue(kTooMany / 8, [&] { device().run(GeluNew{numbers(), saved, others()}); });
  queue(kTooMany / 11, [&] {
    device().run(GeluNewBackward{numbers(), numbers(), saved, others()});
  });
  queue(kTooMany / 4, [&] {  // one byte: four launches and one
    device().run(FillZero{tokens()});
    device().run(EmbeddingBackward{as_matrix(numbers(), kCount, 1), tokens(),
                                   as_matrix(others(), kCount, 1)});
  });

  EXPECT_EQ(cuda_on_host::full_queues(), 0U);
}

}  // namespace
}  // namespace dstune::cuda::launch_backlog_test
