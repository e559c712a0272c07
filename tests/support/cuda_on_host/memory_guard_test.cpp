// Memory of devices that the host's code cannot touch.
#include <csignal>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/cuda_on_host/test_stream.hpp"

namespace memory_guard_test {
namespace {

using cuda_on_host::check;
using cuda_on_host::DeviceArray;
using cuda_on_host::TestStream;

constexpr const char* kSaid = "the host's code touches memory of a device";

__global__ void double_all(int* values, int count) {
  const unsigned i = threadIdx.x;
  if (i < static_cast<unsigned>(count)) values[i] *= 2;
}

class MemoryGuard : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    cuda_on_host::set_up({});
    if (!cuda_on_host::guard_memory(true)) GTEST_SKIP() << "there are no protection keys";
  }
  void TearDown() override {
    cuda_on_host::guard_memory(false);
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
  }
};

using MemoryGuardDeathTest = MemoryGuard;

TEST_F(MemoryGuard, lets_kernels_copies_and_fills_pass) {
  const TestStream stream;
  const DeviceArray<int> data(std::vector{1, 2, 3});
  int last = 0;

  stream.launch(1, 32, double_all, data.data(), 3);
  check(cudaMemcpyAsync(&last, data.data() + 2, sizeof last, cudaMemcpyDeviceToHost, stream.get()));
  check(cudaMemsetAsync(data.data() + 2, 0, sizeof last, stream.get()));
  stream.synchronise();
  check(cudaMemset(data.data() + 1, 0, sizeof last));

  EXPECT_EQ(last, 6);
  EXPECT_EQ(data.values(), (std::vector{2, 0, 0}));
}

TEST_F(MemoryGuard, lets_streams_pass_that_were_made_before) {
  cuda_on_host::guard_memory(false);
  const TestStream stream;
  cuda_on_host::guard_memory(true);
  const DeviceArray<int> data(std::vector{1, 2, 3});

  stream.launch(1, 32, double_all, data.data(), 3);

  stream.synchronise();
  EXPECT_EQ(data.values(), (std::vector{2, 4, 6}));
}

TEST_F(MemoryGuardDeathTest, ends_a_program_whose_host_reads_or_writes) {
  const DeviceArray<int> data(std::vector{1, 2, 3});

  EXPECT_DEATH(*static_cast<volatile int*>(data.data()), kSaid);
  EXPECT_DEATH(*static_cast<volatile int*>(data.data()) = 1, kSaid);
}

TEST_F(MemoryGuardDeathTest, ends_a_program_whose_host_function_reads) {
  const DeviceArray<int> data(std::vector{1, 2, 3});
  const auto reads = [](void* memory) { (void)*static_cast<volatile int*>(memory); };

  EXPECT_DEATH(
      {
        const TestStream stream;
        cudaLaunchHostFunc(stream.get(), reads, data.data());
        stream.synchronise();
      },
      kSaid);
}

TEST_F(MemoryGuardDeathTest, ends_a_program_whose_host_reads_what_is_mapped) {
  constexpr std::size_t kSize = std::size_t{2} << 20U;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle pages = 0;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(cuMemAddressReserve(&range, kSize, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemCreate(&pages, kSize, &prop, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(range, kSize, 0, pages, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemSetAccess(range, kSize, &access, 1), CUDA_SUCCESS);
  auto* const memory = reinterpret_cast<volatile int*>(range);

  EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(range), 0, kSize), cudaSuccess);
  EXPECT_DEATH(*memory, kSaid);

  cuMemUnmap(range, kSize);
  cuMemRelease(pages);
  cuMemAddressFree(range, kSize);
}

TEST_F(MemoryGuardDeathTest, leaves_other_faults_as_they_are) {
  EXPECT_EXIT(*static_cast<volatile int*>(nullptr) = 1, testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace memory_guard_test
