// Every call of a run fails in its turn: the run gets an outcome, and nothing leaks.
#include "core/device/faults.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "core/train/run_experiment.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::faults_test {
namespace {

enum class End { measured, out_of_memory, failed, lost };

void PrintTo(End end, std::ostream* out) {
  constexpr const char* kNames[] = {"measured", "out of memory", "failed", "lost"};
  *out << kNames[static_cast<int>(end)];
}

Experiment tiny(AllocatorModel allocator) {
  test::TinyExperiment tiny;
  tiny.stage = 2;
  tiny.dtype = DType::bf16;
  tiny.zero = {{"overlap_comm", true}, {"reduce_bucket_size", 4096}};
  Experiment experiment = tiny.make();
  experiment.settings.memory_limit = Bytes{64} << 20U;
  experiment.settings.allocator = allocator;
  experiment.settings.warmup_steps = 1;
  experiment.settings.measure_steps = 1;
  return experiment;
}

End end_of(const Outcome& outcome) {
  if (std::holds_alternative<Measured>(outcome)) return End::measured;
  return std::holds_alternative<OutOfMemory>(outcome) ? End::out_of_memory : End::failed;
}

/// A worker: what it throws beside these would end the run.
class Worker {
 public:
  explicit Worker(AllocatorModel allocator = AllocatorModel::caching) : allocator_(allocator) {}

  End run() {
    try {
      if (!backend_) backend_ = std::make_unique<cuda::CudaBackend>(0);
      const Experiment experiment = tiny(allocator_);
      Device& device = backend_->device({.memory_limit = experiment.settings.memory_limit});
      const auto collectives = backend_->collectives(group_, {});
      return end_of(run_experiment(experiment, device, *collectives, group_));
    } catch (const OutOfMemoryError&) {
      return End::out_of_memory;
    } catch (const DeviceLostError&) {
      return End::lost;
    } catch (const Error&) {
      return End::failed;
    }
  }

 private:
  AllocatorModel allocator_;
  test::ThreadTeam team_{1};
  test::ThreadGroup group_{team_, 0};
  std::unique_ptr<cuda::CudaBackend> backend_;
};

/// Every function of CUDA that an experiment of one rank calls.
constexpr const char* kFunctions[] = {
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemGetAllocationGranularity",
    "cuMemMap",
    "cuMemSetAccess",
    "cublasLtCreate",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cudaDeviceGetAttribute",
    "cudaDeviceGetPCIBusId",
    "cudaEventCreateWithFlags",
    "cudaEventElapsedTime",
    "cudaEventQuery",
    "cudaEventRecord",
    "cudaGetDevice",
    "cudaGetDeviceProperties",
    "cudaHostAlloc",
    "cudaLaunchKernelEx",
    "cudaMalloc",
    "cudaMemGetInfo",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaSetDevice",
    "cudaStreamCreateWithFlags",
    "cudaStreamWaitEvent",
};

constexpr const char* kOfSegments[] = {"cuMemAddressReserve", "cuMemCreate", "cuMemMap",
                                       "cuMemSetAccess"};

/// Of the first segment, which is a trial: where it fails, buffers lie in a piece.
bool is_of_trial(const cuda_on_host::Fault& fault) {
  return fault.call == 1 &&
         std::count(std::begin(kOfSegments), std::end(kOfSegments), fault.function) > 0;
}

/// Which of `calls` are made to fail: all of few, the first and some of many.
std::vector<std::uint64_t> chosen(std::uint64_t calls) {
  const std::uint64_t few = test::takes_all() ? 6 : 2;
  std::vector<std::uint64_t> result;
  for (std::uint64_t call = 1; call <= calls; call += call < few ? 1 : calls / few + 1) {
    result.push_back(call);
  }
  return result;
}

class FaultsTest : public testing::Test {
 protected:
  FaultsTest() { set_up(); }
  ~FaultsTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }

  static void set_up() { cuda_on_host::set_up({.bytes = Bytes{1} << 30U}); }

  /// Calls of each of kFunctions in one experiment.
  static std::map<std::string, std::uint64_t> count_calls(
      AllocatorModel allocator = AllocatorModel::caching) {
    set_up();
    Worker worker(allocator);
    EXPECT_EQ(worker.run(), End::measured);
    std::map<std::string, std::uint64_t> calls;
    for (const char* function : kFunctions) calls[function] = cuda_on_host::calls(function);
    return calls;
  }

  /// body(fault) for chosen calls of every function. @returns how many
  template <class Body>
  static int for_each_fault(cudaError_t error, bool sticky, Body body) {
    int faults = 0;
    for (const auto& [function, calls] : count_calls()) {
      for (const std::uint64_t call : chosen(calls)) {
        SCOPED_TRACE(function + ", call " + std::to_string(call));
        set_up();
        body(cuda_on_host::Fault{
            .function = function, .call = call, .error = error, .sticky = sticky});
        EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{});
        ++faults;
      }
    }
    std::cout << faults << " faults\n";
    return faults;
  }
};

TEST_F(FaultsTest, EveryFunctionThatIsCalledIsMadeToFail) {
  const auto calls = count_calls();
  std::uint64_t known = 0;
  for (const auto& [function, count] : calls) {
    EXPECT_GT(count, 0U) << function;
    known += count;
  }
  for (const char* function :  // what cannot fail, or gives back
       {"cuMemAddressFree", "cuMemRelease", "cuMemUnmap", "cudaGetLastError", "cudaEventDestroy",
        "cudaFree", "cudaFreeHost", "cudaStreamDestroy", "cublasLtDestroy",
        "cublasLtMatmulDescDestroy", "cublasLtMatmulPreferenceDestroy",
        "cublasLtMatrixLayoutDestroy"}) {
    known += cuda_on_host::calls(function);
  }
  EXPECT_EQ(cuda_on_host::calls(""), known);
}

TEST_F(FaultsTest, MemoryThatIsRefusedIsAnOutcomeAndTheNextExperimentRuns) {
  for (const AllocatorModel allocator : {AllocatorModel::exact, AllocatorModel::caching}) {
    SCOPED_TRACE(name_of(allocator));
    const std::uint64_t calls = count_calls(allocator).at("cudaMalloc");
    ASSERT_GT(calls, 5U);  // scratch of every stream, the workspace, a piece
    for (std::uint64_t call = 1; call <= calls; ++call) {
      set_up();
      Worker worker(allocator);
      cuda_on_host::inject(
          {.function = "cudaMalloc", .call = call, .error = cudaErrorMemoryAllocation});

      const End end = worker.run();

      EXPECT_TRUE(end == End::out_of_memory || end == End::measured) << "call " << call;
      EXPECT_EQ(cuda_on_host::faults_left(), 0);
      EXPECT_EQ(worker.run(), End::measured) << "after call " << call;
    }
  }
}

// PyTorch's allocator asks once more, after it has given its cache back.
TEST_F(FaultsTest, ASegmentThatIsRefusedTwiceIsAnOutcomeAndTheNextExperimentRuns) {
  const auto all_calls = count_calls();
  for (const char* function : kOfSegments) {
    const std::uint64_t calls = all_calls.at(function);
    ASSERT_GT(calls, 2U);
    for (std::uint64_t call = 2; call <= calls; ++call) {  // behind the trial
      for (const bool twice : {false, true}) {
        SCOPED_TRACE(std::string(function) + ", call " + std::to_string(call));
        set_up();
        Worker worker;
        for (std::uint64_t i = 0; i < (twice ? 2U : 1U); ++i) {
          cuda_on_host::inject(
              {.function = function, .call = call + i, .error = cudaErrorMemoryAllocation});
        }

        EXPECT_EQ(worker.run(), twice ? End::out_of_memory : End::measured);

        EXPECT_EQ(cuda_on_host::faults_left(), 0);
        EXPECT_EQ(worker.run(), End::measured);
      }
    }
  }
}

// CUDA loads a kernel when it is first launched, and a library takes memory of its own.
TEST_F(FaultsTest, AFullGpuIsOutOfMemoryWhicheverCallSaysSo) {
  for (const char* function :
       {"cublasLtMatmul", "cudaEventRecord", "cudaLaunchKernelEx", "cudaMemcpyAsync"}) {
    SCOPED_TRACE(function);
    set_up();
    Worker worker;
    ASSERT_EQ(worker.run(), End::measured);  // peaks are known, which could do without memory
    const bool is_cublas = std::string(function).starts_with("cublas");
    cuda_on_host::inject(
        {.function = function,
         .call = 5,
         .error = is_cublas ? int{CUBLAS_STATUS_ALLOC_FAILED} : int{cudaErrorMemoryAllocation}});

    EXPECT_EQ(worker.run(), End::out_of_memory);
    EXPECT_EQ(worker.run(), End::measured);
  }
}

TEST_F(FaultsTest, NoPinnedMemoryOfTheHostIsNoFullGpu) {
  Worker worker;
  cuda_on_host::inject({.function = "cudaHostAlloc", .error = cudaErrorMemoryAllocation});

  EXPECT_EQ(worker.run(), End::failed);
  EXPECT_EQ(worker.run(), End::measured);
}

TEST_F(FaultsTest, ACallThatFailsOnceIsAnOutcomeAndTheNextExperimentRuns) {
  const int faults = for_each_fault(cudaErrorInvalidValue, false, [](const auto& fault) {
    Worker worker;
    cuda_on_host::inject(fault);

    const End end = worker.run();

    EXPECT_TRUE(end == End::failed || cuda_on_host::faults_left() == 1 ||
                fault.function == "cudaEventQuery" || is_of_trial(fault))
        << testing::PrintToString(end);
    if (is_of_trial(fault)) {
      EXPECT_EQ(end, End::measured);
    }
    if (cuda_on_host::faults_left() == 0) {  // how often is asked whether work is over varies
      EXPECT_EQ(worker.run(), End::measured);
    }
  });
  EXPECT_GE(faults, 2 * std::ssize(kFunctions));
}

TEST_F(FaultsTest, AnErrorThatStaysLosesTheDevice) {
  const int faults = for_each_fault(cudaErrorIllegalAddress, true, [](const auto& fault) {
    Worker worker;
    cuda_on_host::inject(fault);

    const End first = worker.run();

    if (cuda_on_host::faults_left() == 0) {
      EXPECT_EQ(first, End::lost);
      EXPECT_EQ(worker.run(), End::lost);
    }
  });
  EXPECT_GE(faults, 2 * std::ssize(kFunctions));
}

}  // namespace
}  // namespace dstune::faults_test
