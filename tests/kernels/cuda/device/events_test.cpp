#include "kernels/cuda/device/events.hpp"

#include "kernels/cuda/base/check.hpp"
#include "tests/kernels/cuda/collectives/rank_gpu.hpp"

namespace dstune::cuda::events_test {
namespace {

class EventPoolTest : public OnHostTest {
 protected:
  /// What comes of the time between two records of `event`.
  static cudaError_t time(const std::shared_ptr<const void>& event) {
    const StreamHandle stream = make_stream();
    DSTUNE_CUDA_CHECK(cudaEventRecord(EventPool::of(event), stream.get()));
    DSTUNE_CUDA_CHECK(cudaEventSynchronize(EventPool::of(event)));
    float milliseconds = 0;
    const cudaError_t error =
        cudaEventElapsedTime(&milliseconds, EventPool::of(event), EventPool::of(event));
    cudaGetLastError();
    return error;
  }

  EventPool pool_;
};

TEST_F(EventPoolTest, OnlyThoseWithATimeKnowIt) {
  EXPECT_EQ(time(pool_.take()), cudaSuccess);
  EXPECT_NE(time(pool_.take_untimed()), cudaSuccess);
  EXPECT_EQ(time(pool_.take()), cudaSuccess);
}

TEST_F(EventPoolTest, AnEventIsUsedAgainByItsOwnKind) {
  const void* const timed = pool_.take().get();
  const void* const untimed = pool_.take_untimed().get();

  EXPECT_EQ(pool_.take().get(), timed);
  EXPECT_EQ(pool_.take_untimed().get(), untimed);
  EXPECT_EQ(cuda_on_host::live().events, 2);
}

}  // namespace
}  // namespace dstune::cuda::events_test
