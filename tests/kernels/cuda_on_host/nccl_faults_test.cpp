// Every call of NCCL fails or hangs in its turn on one of two ranks: both get an end, the next
// experiment runs, and nothing leaks.
#include <array>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <nccl.h>

#include "core/device/faults.hpp"
#include "core/train/run_experiment.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/thread_group.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::nccl_faults_test {
namespace {

constexpr int kRanks = 2;
constexpr int kFaulty = 1;  // rank and GPU

enum class End { measured, ended, lost };

/// Looks at rank 0, which take the longer the busier the machine is.
constexpr int kForever = std::numeric_limits<int>::max();
constexpr int kImpatient = 4'000;

/// Rank 0's time limit, in looks instead of seconds: then all ranks are told to give up.
class ImpatientGroup final : public Group {
 public:
  ImpatientGroup(test::ThreadTeam& team, int rank, int most_looks)
      : team_(team), group_(team, rank), most_looks_(most_looks) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void broadcast(std::span<std::byte> data, int root) override { group_.broadcast(data, root); }
  bool vote(bool ok) override { return group_.vote(ok); }
  std::vector<std::string> gather(const std::string& text) override { return group_.gather(text); }
  void poll() override {
    if (group_.polls > most_looks_) team_.abort();
    group_.poll();
  }

 private:
  test::ThreadTeam& team_;
  test::ThreadGroup group_;
  int most_looks_;
};

Experiment tiny() {
  test::TinyExperiment tiny;
  tiny.stage = 3;
  tiny.ranks = kRanks;
  tiny.dtype = DType::bf16;
  tiny.zero = {{"overlap_comm", true},
               {"reduce_bucket_size", 256},
               {"stage3_prefetch_bucket_size", 256},
               {"stage3_param_persistence_threshold", 8}};
  Experiment experiment = tiny.make();
  experiment.settings.memory_limit = Bytes{8} << 20U;
  experiment.settings.warmup_steps = 0;
  experiment.settings.measure_steps = 1;
  return experiment;
}

/// What a worker does; its peers are told of a failure, as rank 0 tells them.
End run(cuda::CudaBackend& backend, test::ThreadTeam& team, int rank, int most_looks) {
  const Experiment experiment = tiny();
  try {
    ImpatientGroup group(team, rank, most_looks);
    Device& device = backend.device({.memory_limit = experiment.settings.memory_limit});
    const auto collectives = backend.collectives(group, {});
    const Outcome outcome = run_experiment(experiment, device, *collectives, group);
    return std::holds_alternative<Measured>(outcome) ? End::measured : End::ended;
  } catch (const DeviceLostError&) {
    team.abort();
    return End::lost;
  } catch (const Error&) {
    team.abort();
    return End::ended;
  }
}

using Ends = std::array<std::array<End, kRanks>, 2>;  // by experiment, by rank

/// Two experiments; `plant` is called before the first, which has `most_looks`.
template <class Plant>
Ends run_two(Plant plant, int most_looks = kForever) {
  cuda_on_host::set_up({.devices = kRanks, .bytes = Bytes{1} << 30U});
  plant();
  Ends ends{};
  test::run_on_ranks(kRanks, [&](int rank, test::ThreadTeam& team) {
    const auto place = static_cast<std::size_t>(rank);
    cuda::CudaBackend backend(rank);
    ends[0][place] = run(backend, team.part_of({0, 1}), rank, most_looks);
    test::ThreadGroup(team, rank).vote(true);
    if (rank == 0) cuda_on_host::release_hangs();
    ends[1][place] = run(backend, team, rank, kForever);
  });
  return ends;
}

constexpr const char* kFunctions[] = {"ncclAllGather", "ncclAllReduce", "ncclCommGetAsyncError",
                                      "ncclCommInitRankConfig", "ncclReduceScatter"};

class NcclFaultsTest : public testing::TestWithParam<const char*> {
 protected:
  ~NcclFaultsTest() override { EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}); }

  /// How often it is called is a matter of time, not of the experiment.
  static bool is_polled() { return GetParam() == std::string("ncclCommGetAsyncError"); }

  /// Some of the calls of the function under test that one experiment is sure to make.
  static std::vector<std::uint64_t> chosen_calls() {
    if (is_polled()) return {1};
    const std::uint64_t most = test::takes_all() ? 5 : 2;
    run_two([] {});
    const std::uint64_t all = cuda_on_host::calls(GetParam(), kFaulty);
    EXPECT_GT(all, 0U);
    const std::uint64_t calls = (all + 1) / 2;  // the second experiment has the communicator
    std::vector<std::uint64_t> chosen;
    for (std::uint64_t call = 1; call <= calls; call += calls / most + 1) chosen.push_back(call);
    return chosen;
  }

  static void expect_recovery(const Ends& ends) {
    for (const End end : ends[0]) EXPECT_NE(end, End::lost);
    for (const End end : ends[1]) EXPECT_EQ(end, End::measured);
  }
};

INSTANTIATE_TEST_SUITE_P(Functions, NcclFaultsTest, testing::ValuesIn(kFunctions),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(NcclFaultsTest, AnErrorEndsTheExperimentAndTheNextRuns) {
  for (const std::uint64_t call : chosen_calls()) {
    SCOPED_TRACE(call);

    const Ends ends = run_two([call] {
      cuda_on_host::inject(
          {.function = GetParam(), .call = call, .error = ncclSystemError, .device = kFaulty});
    });

    EXPECT_EQ(ends[0][kFaulty], End::ended);
    expect_recovery(ends);
  }
}

TEST_P(NcclFaultsTest, ACallThatNeverEndsIsGivenUpAndTheNextExperimentRuns) {
  if (is_polled()) GTEST_SKIP() << "queues nothing";
  for (const std::uint64_t call : chosen_calls()) {
    SCOPED_TRACE(call);

    const Ends ends =
        run_two([call] { cuda_on_host::hang_at(GetParam(), call, kFaulty); }, kImpatient);

    for (const End end : ends[0]) EXPECT_EQ(end, End::ended);
    expect_recovery(ends);
  }
}

}  // namespace
}  // namespace dstune::nccl_faults_test
