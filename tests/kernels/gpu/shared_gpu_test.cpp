// Ranks that are processes and share the first GPU: the suite of Collectives, and training.
#include <memory>
#include <numeric>
#include <optional>
#include <variant>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/collectives/share_gpu.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "mpi/collectives/mpi_group.hpp"
#include "tests/core/device/collectives/collectives_suite.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune {
namespace {

constexpr Bytes kMemory = Bytes{64} << 20U;
constexpr Seconds kNever = 1e6;  // there is no rank 0 that would answer

/// This process among the ranks of mpirun, with its backend.
class Process : public ::testing::Environment {
 public:
  void SetUp() override {
    world_.emplace(Communicator::duplicate(MPI_COMM_WORLD));
    WorkerOptions options;
    options.heartbeat = options.lease = kNever;
    link_.emplace(*world_, options);
    cuda::prepare_shared_gpu({.rank = world_->rank(), .shares_gpu = true});
    backend_.emplace(0);
  }
  void TearDown() override {
    backend_.reset();
    link_.reset();
    world_.reset();
  }

  /// body(group, device, collectives) on each of the first `size` ranks.
  template <class Body>
  void run(int size, Body body) {
    if (world_->rank() >= size) return;
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    constexpr int kTags = 100;
    MpiGroup group(ranks, kTags + size, *link_);
    Device& device = backend_->device({.memory_limit = kMemory});
    const auto collectives = backend_->collectives(group, {});
    body(group, device, *collectives);
    device.synchronize();
    group.vote(true);  // who left early would end what others are still receiving
  }

 private:
  std::optional<Communicator> world_;
  std::optional<WorkerLink> link_;
  std::optional<cuda::CudaBackend> backend_;
};

Process& process() {
  static auto* const environment = new Process;  // googletest deletes it
  return *environment;
}

[[maybe_unused]] const auto* const kRegistered = ::testing::AddGlobalTestEnvironment(&process());

Experiment tiny(int stage, int ranks) {
  test::TinyExperiment tiny;
  tiny.stage = stage;
  tiny.ranks = ranks;
  tiny.zero = {{"reduce_bucket_size", 256},
               {"stage3_prefetch_bucket_size", 256},
               {"stage3_param_persistence_threshold", 8}};
  Experiment experiment = tiny.make();
  experiment.settings.memory_limit = kMemory;
  experiment.settings.warmup_steps = 2;
  experiment.settings.measure_steps = 1;
  return experiment;
}

TEST(SharedGpu, EveryStageTrainsAlikeOnIt) {
  constexpr int kRanks = 2;
  std::vector<double> losses;
  for (int stage = 0; stage <= 3; ++stage) {
    process().run(kRanks, [&](Group& group, Device& device, Collectives& collectives) {
      const Outcome outcome = run_experiment(tiny(stage, kRanks), device, collectives, group);
      ASSERT_TRUE(std::holds_alternative<Measured>(outcome)) << to_json_text(to_json(outcome), 0);
      if (group.rank() == 0) losses.push_back(std::get<Measured>(outcome).last_loss);
    });
  }
  for (const double loss : losses) {
    EXPECT_GT(loss, 0);
    EXPECT_NEAR(loss, losses.front(), 1e-4 * losses.front());
  }
}

}  // namespace

namespace testing {

CollectivesCase collectives_case() {
  const auto run = [](int size, const CollectivesCase::Body& body) {
    process().run(size, [&body](Group& /*group*/, Device& device, Collectives& collectives) {
      body(device, collectives);
    });
  };
  // cudaMemcpy() of pageable memory may return before its last bytes arrive, and NCCL's stream
  // waits for nobody.
  const auto copy = [](const void* from, void* to, std::size_t size) {
    DSTUNE_CUDA_CHECK(cudaMemcpy(to, from, size, cudaMemcpyDefault));
    DSTUNE_CUDA_CHECK(cudaDeviceSynchronize());
  };
  return {run, copy, copy};
}

}  // namespace testing
}  // namespace dstune
