// What a GPU has left, on CUDA on the host.
#include "kernels/cuda/device/memory_probe.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/device/piece_size.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::cuda::memory_probe_test {
namespace {

constexpr Bytes kMemory = Bytes{4} << 30U;

class MemoryProbeTest : public testing::Test {
 protected:
  MemoryProbeTest() { cuda_on_host::set_up({.bytes = kMemory}); }
  ~MemoryProbeTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }

  static const MemoryReserve& reserve(const FreeMemory& memory, const std::string& what) {
    const auto found = std::find_if(memory.reserves.begin(), memory.reserves.end(),
                                    [&](const auto& reserve) { return reserve.what == what; });
    if (found == memory.reserves.end()) throw Error("no reserve: " + what);
    return *found;
  }

  static Bytes left(const FreeMemory& memory, AllocatorModel allocator = AllocatorModel::exact) {
    Bytes left = memory.free;
    for (const MemoryReserve& reserve : memory.reserves) {
      if (allocator == AllocatorModel::exact || !reserve.only_if_exact) left -= reserve.bytes;
    }
    return left;
  }
};

TEST_F(MemoryProbeTest, CountsWhatABackendTakesAndWhatComesLater) {
  const FreeMemory memory = probe_memory(0, true);

  EXPECT_EQ(memory.free, kMemory);
  EXPECT_EQ(reserve(memory, "operations' scratch"),
            (MemoryReserve{"operations' scratch", kStreams * Gpu::kScratch + Gpu::kBesideSegments,
                           true}));
  EXPECT_GT(reserve(memory, "libraries' workspaces").bytes, 0U);
  EXPECT_TRUE(reserve(memory, "kernels").is_measured);
  EXPECT_EQ(reserve(memory, "kernels loaded later").bytes, kLoadedLater);
  EXPECT_EQ(reserve(memory, "NCCL's buffers").bytes, CommunicatorLimits{}.reserve);
  EXPECT_GT(reserve(memory, "gaps between buffers").bytes, Bytes{32} << 20U);
  EXPECT_TRUE(reserve(memory, "gaps between buffers").only_if_exact);
  EXPECT_FALSE(reserve(memory, "NCCL's buffers").only_if_exact);
}

TEST_F(MemoryProbeTest, AGpuWithoutVirtualMemoryKeepsSomeForGapsAndSaysWhy) {
  cuda_on_host::set_up({.bytes = kMemory, .virtual_memory = false});

  const FreeMemory memory = probe_memory(0, false);

  const MemoryReserve& gaps =
      reserve(memory, "gaps between buffers, as the GPU has no virtual memory management");
  EXPECT_GT(gaps.bytes, Bytes{32} << 20U);
  EXPECT_FALSE(gaps.only_if_exact);
}

TEST_F(MemoryProbeTest, AWorkerWithoutPeersKeepsNothingForNccl) {
  const FreeMemory memory = probe_memory(0, false);

  EXPECT_THROW(reserve(memory, "NCCL's buffers"), Error);
}

// CUDA loads a kernel when it is first used: what is not used here would be loaded in a step.
TEST_F(MemoryProbeTest, UsesKernelsAndProductsOfEveryTypeOnce) {
  probe_memory(0, false);

  EXPECT_EQ(cuda_on_host::calls("cublasLtMatmul"), 6U);
  EXPECT_GT(cuda_on_host::calls("cudaLaunchKernelEx"), 150U);
}

TEST_F(MemoryProbeTest, CountsTheMemoryOfTheKernelsThatItLoads) {
  constexpr Bytes kKernel = Bytes{64} << 10U;
  cuda_on_host::set_up({.bytes = kMemory, .kernel_bytes = kKernel});

  const FreeMemory memory = probe_memory(0, false);

  EXPECT_EQ(reserve(memory, "kernels").bytes, cuda_on_host::loaded_kernels().size() * kKernel);
  EXPECT_GT(cuda_on_host::loaded_kernels().size(), 100U);
}

TEST_F(MemoryProbeTest, AGpuThatCannotMultiplyInOneTypeIsMeasuredAllTheSame) {
  cuda_on_host::inject({.function = "cublasLtMatmulAlgoGetHeuristic", .call = 2, .error = 15});

  const FreeMemory memory = probe_memory(0, false);

  EXPECT_EQ(cuda_on_host::faults_left(), 0);
  EXPECT_GT(left(memory), 0U);
}

TEST_F(MemoryProbeTest, AGpuWithoutCodeForItSaysForWhatToCompile) {
  cuda_on_host::set_up({.bytes = kMemory,
                        .name = "Tesla V100-SXM2-32GB",
                        .major = 7,
                        .minor = 0,
                        .architectures = "75-real;80-real;90"});

  try {
    probe_memory(0, false);
    FAIL() << "it was measured";
  } catch (const NoCodeError& error) {
    EXPECT_STREQ(error.what(),
                 "this program has no code for Tesla V100-SXM2-32GB, compute capability 7.0 "
                 "(cudaErrorNoKernelImageForDevice): CUDA 13.0 compiled it for 7.5, 8.0, 9.0+PTX; "
                 "CUDA 13 has dropped all before 7.5: build with a CUDA 12 toolkit (12.2 or newer) "
                 "and CUDAARCHS=70 (scripts/build.sh)");
  }
}

TEST_F(MemoryProbeTest, AGpuThatAnotherProcessHasSaysSo) {
  cuda_on_host::inject({.function = "cudaFree", .error = cudaErrorDevicesUnavailable});

  const auto unusable = [] {
    try {
      probe_memory(0, false);
      return std::string("measured");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  }();
  EXPECT_NE(unusable.find("perhaps by another rank, and its compute mode is exclusive"),
            std::string::npos)
      << unusable;
}

// The default memory limit is what is left.
TEST_F(MemoryProbeTest, ABackendGivesBuffersAllThatIsLeft) {
  for (const AllocatorModel allocator : {AllocatorModel::exact, AllocatorModel::caching}) {
    SCOPED_TRACE(name_of(allocator));
    const Bytes limit = left(probe_memory(0, true), allocator) / CachingModel::kSegmentUnit *
                        CachingModel::kSegmentUnit;
    CudaBackend backend(0, true);

    Device& device = backend.device({.memory_limit = limit});
    device.memory().count_as(allocator);

    const Buffer all(device, MemoryCategory::parameters, limit);
    EXPECT_GE(cuda_on_host::live().bytes, limit);
  }
}

}  // namespace
}  // namespace dstune::cuda::memory_probe_test
