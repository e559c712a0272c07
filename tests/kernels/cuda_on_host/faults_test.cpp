// Every call of a run fails in its turn: the run gets an outcome, and nothing leaks.
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <variant>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "core/device/faults.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

enum class End { measured, out_of_memory, failed, lost };

void PrintTo(End end, std::ostream* out) {
  constexpr const char* kNames[] = {"measured", "out of memory", "failed", "lost"};
  *out << kNames[static_cast<int>(end)];
}

Experiment tiny() {
  test::TinyExperiment tiny;
  tiny.stage = 2;
  tiny.dtype = DType::bf16;
  tiny.zero = {{"overlap_comm", true}};
  Experiment experiment = tiny.make();
  experiment.settings.memory_limit = Bytes{8} << 20U;
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
  End run() {
    try {
      if (!backend_) backend_ = std::make_unique<cuda::CudaBackend>(0);
      const Experiment experiment = tiny();
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
  test::ThreadTeam team_{1};
  test::ThreadGroup group_{team_, 0};
  std::unique_ptr<cuda::CudaBackend> backend_;
};

class FaultsTest : public testing::Test {
 protected:
  FaultsTest() { cuda_on_host::set_up({.bytes = Bytes{1} << 30U}); }
  ~FaultsTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }

  /// Calls of `function` in one experiment.
  static std::uint64_t calls_of(const std::string& function) {
    Worker worker;
    EXPECT_EQ(worker.run(), End::measured);
    return cuda_on_host::calls(function);
  }
};

TEST_F(FaultsTest, MemoryThatIsRefusedIsAnOutcomeAndTheNextExperimentRuns) {
  const std::uint64_t calls = calls_of("cudaMalloc");
  ASSERT_GT(calls, 4U);  // scratch of every stream, the piece, the workspace
  for (std::uint64_t call = 1; call <= calls; ++call) {
    Worker worker;
    cuda_on_host::inject(
        {.function = "cudaMalloc", .call = call, .error = cudaErrorMemoryAllocation});

    const End end = worker.run();

    EXPECT_EQ(end, End::out_of_memory) << "call " << call;
    EXPECT_EQ(worker.run(), End::measured) << "after call " << call;
  }
}

TEST_F(FaultsTest, ACallThatFailsOnceIsAnOutcomeAndTheNextExperimentRuns) {
  const std::uint64_t calls = calls_of("");
  for (std::uint64_t call = 1; call <= calls; call += 3) {
    Worker worker;
    cuda_on_host::inject({.function = "", .call = call, .error = cudaErrorInvalidValue});

    const End end = worker.run();

    EXPECT_TRUE(end == End::failed || end == End::measured || end == End::lost)
        << "call " << call << ": " << testing::PrintToString(end);
    if (end != End::lost) {
      EXPECT_EQ(worker.run(), End::measured) << "after call " << call;
    }
  }
}

TEST_F(FaultsTest, AnErrorThatStaysLosesTheDevice) {
  const std::uint64_t calls = calls_of("");
  for (std::uint64_t call = 1; call <= calls; call += 5) {
    cuda_on_host::set_up({.bytes = Bytes{1} << 30U});
    {
      Worker worker;
      cuda_on_host::inject(
          {.function = "", .call = call, .error = cudaErrorIllegalAddress, .sticky = true});

      EXPECT_EQ(worker.run(), End::lost) << "call " << call;
      EXPECT_EQ(worker.run(), End::lost) << "call " << call;
    }
    EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "call " << call;
  }
}

}  // namespace
}  // namespace dstune
