#include "core/search/feasibility/memory_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/search/feasibility/machine.hpp"
#include "tests/support/scripted_pool.hpp"

namespace dstune::memory_limit_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Bytes kMiB = Bytes{1} << 20U;
constexpr Bytes kGiB = Bytes{1} << 30U;

DeviceInfo gpu(Bytes free_memory, Bytes context) {
  DeviceInfo info{"cuda", "Some GPU", 80 * kGiB, free_memory, false, ""};
  info.limit_is_free_memory = true;
  info.reserves = {{"CUDA context", context, true}, {"NCCL's buffers", 100 * kMiB, false}};
  return info;
}

WorkerInfo worker(int rank, DeviceInfo device) {
  WorkerInfo info;
  info.rank = rank;
  info.host = "node" + std::to_string(rank);
  info.workers_on_host = 1;
  info.devices = {std::move(device)};
  return info;
}

/// Of the second there is more free, but it needs more beside.
std::vector<WorkerInfo> two_workers() {
  return {worker(1, gpu(70 * kGiB, 400 * kMiB)), worker(2, gpu(71 * kGiB, 3 * kGiB))};
}

TuningConfig unlimited() {
  TuningConfig config;
  config.source = "config.json";
  config.settings.backend = "cuda";
  return config;
}

TEST(MemoryLimit, IsWhatIsFreeOnTheLeastFreeGpuLessItsReserves) {
  const MemoryLimit limit = memory_limit_of_run(unlimited(), "cuda", two_workers());

  EXPECT_EQ(limit.bytes, 68 * kGiB - 100 * kMiB);
  EXPECT_EQ(limit.origin,
            "71.00 GiB free on Some GPU of rank 2 on node2, less 3.00 GiB CUDA context (measured), "
            "100.00 MiB NCCL's buffers (estimated)");
}

TEST(MemoryLimit, KeepsMemoryForGapsOnlyWhereSizesAreCountedExactly) {
  auto workers = two_workers();
  workers.pop_back();
  workers.front().devices.front().reserves.push_back({"gaps", 2 * kGiB, false, true});
  TuningConfig config = unlimited();
  const Bytes by_segments = 70 * kGiB - 500 * kMiB;

  EXPECT_EQ(memory_limit_of_run(config, "cuda", workers).bytes, by_segments);
  config.allocator = AllocatorModel::exact;
  const MemoryLimit limit = memory_limit_of_run(config, "cuda", workers);

  EXPECT_EQ(limit.bytes, by_segments - 2 * kGiB);
  EXPECT_THAT(limit.origin, HasSubstr("2.00 GiB gaps (estimated)"));
  EXPECT_THAT(shortage_of_free_memory(by_segments, "cuda", workers, AllocatorModel::caching),
              IsEmpty());
  EXPECT_THAT(shortage_of_free_memory(by_segments, "cuda", workers, AllocatorModel::exact),
              HasSubstr("gaps"));
}

TEST(MemoryLimit, OfWorkersThatShareAGpuIsTheirPartLessTheirOwnReserves) {
  auto workers = two_workers();
  for (WorkerInfo& each : workers) {
    each.host = "node1";
    each.devices = {gpu(70 * kGiB, 400 * kMiB)};
    each.devices.front().id = "GPU-1";
  }

  const MemoryLimit limit = memory_limit_of_run(unlimited(), "cuda", workers);

  EXPECT_EQ(limit.bytes, 35 * kGiB - 500 * kMiB);
  EXPECT_THAT(limit.origin, HasSubstr("of rank 1 on node1, for 2 workers, less"));
}

/// Two workers of a host of 24 GiB.
std::vector<WorkerInfo> two_on_a_host(const std::vector<MemoryBound>& bounds) {
  DeviceInfo cpu{"cpu", "Some CPU", 24 * kGiB, 23 * kGiB, true, ""};
  cpu.bounds = bounds;
  std::vector<WorkerInfo> workers = {worker(1, cpu), worker(2, cpu)};
  for (WorkerInfo& each : workers) {
    each.host = "node1";
    each.workers_on_host = 2;
  }
  return workers;
}

TEST(MemoryLimit, OfAHostIsWhatItsNarrowestBoundLeavesToAWorker) {
  const MemoryLimit limit =
      memory_limit_of_run(unlimited(), "cpu",
                          two_on_a_host({{"control group /job (memory.max)", 3 * kGiB, 0, "1:2"},
                                         {"control group / (memory.max)", 8 * kGiB, 0, "1:1"}}));

  EXPECT_EQ(limit.bytes, static_cast<Bytes>(0.85 * 3 * kGiB) / 2);
  EXPECT_EQ(limit.origin,
            "85 % of the 3.00 GiB of control group /job (memory.max), for 2 workers (node1)");
}

TEST(MemoryLimit, OfAHostThatRunsOnKeepsWhatItBeganWithUnlessThereIsNotSoMuch) {
  const MemoryBound bound{"control group /job (memory.max)", 3 * kGiB, 2 * kGiB, "1:2"};
  const auto workers = two_on_a_host({bound});
  const Bytes now = (1 * kGiB - 2 * 64 * kMiB) / 2;

  EXPECT_EQ(memory_limit_of_run(unlimited(), "cpu", workers).bytes, now);
  EXPECT_EQ(memory_limit_of_run(unlimited(), "cpu", workers, 1 * kGiB).bytes, 1 * kGiB);
  EXPECT_EQ(memory_limit_of_run(unlimited(), "cpu", workers, 10 * kGiB).bytes, now);
}

TEST(MemoryLimit, OfAHostThatHasNothingLeftIsAFaultOfTheConfiguration) {
  const auto workers = two_on_a_host({{"ulimit -v", 512 * kMiB, 450 * kMiB, ""}});

  try {
    memory_limit_of_run(unlimited(), "cpu", workers);
    FAIL();
  } catch (const ConfigError& fault) {
    EXPECT_THAT(fault.what(),
                HasSubstr("/dstune/memory_limit  is not set, and nothing is left: 62.00 MiB of "
                          "the 512.00 MiB of ulimit -v are free, for 1 worker"));
  }
}

TEST(MemoryLimit, IsTheUsersWhateverIsFree) {
  auto config = unlimited();
  config.settings.memory_limit = 7;

  const MemoryLimit limit = memory_limit_of_run(config, "cuda", two_workers(), 5);

  EXPECT_EQ(limit.bytes, 7U);
  EXPECT_EQ(limit.origin, "");
}

TEST(MemoryLimit, OfARunThatGoesOnIsTheOneThatItBeganWith) {
  EXPECT_EQ(memory_limit_of_run(unlimited(), "cuda", two_workers(), 60 * kGiB).bytes, 60 * kGiB);
}

TEST(MemoryLimit, OfADeviceThatDoesNotGoByFreeMemoryIsAllOfIt) {
  const std::vector<WorkerInfo> workers = {
      worker(1, {"cuda", "Some GPU", 40 * kGiB, 3 * kGiB, false, ""})};

  EXPECT_EQ(memory_limit_of_run(unlimited(), "cuda", workers, 5).bytes, 40 * kGiB);
}

TEST(MemoryLimit, IsAFaultOfTheConfigurationWhereNothingIsLeft) {
  const std::vector<WorkerInfo> workers = {worker(1, gpu(400 * kMiB, 400 * kMiB))};

  try {
    memory_limit_of_run(unlimited(), "cuda", workers);
    FAIL() << "400 MiB are not more than 500";
  } catch (const ConfigError& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("/dstune/memory_limit  is not set, and nothing is left of "
                                        "400.00 MiB free on Some GPU of rank 1 on node1"));
  }
}

TEST(MemoryLimit, AboveWhatIsFreeInTheRunThatGoesOnIsAWarning) {
  const Machine enough = machine_of_run(unlimited(), two_workers(), 2, "", {60 * kGiB});
  const Machine too_much = machine_of_run(unlimited(), two_workers(), 2, "", {69 * kGiB});

  EXPECT_THAT(machine_warnings(unlimited(), enough, two_workers()), IsEmpty());
  EXPECT_THAT(machine_warnings(unlimited(), too_much, two_workers()),
              ElementsAre(HasSubstr("began with a memory limit of 69.00 GiB, and now there are "
                                    "only 71.00 GiB free on Some GPU of rank 2")));
  EXPECT_EQ(too_much.memory_limit_origin, "that of the resumed run");
}

/// A configuration that offloads, on a device with `limit` bytes (0: not said).
TuningConfig offloading(const std::string& backend, Bytes limit) {
  TuningConfig config = unlimited();
  config.settings.backend = backend;
  config.settings.memory_limit = limit;
  config.stages = {2};
  config.deepspeed =
      json::object{{"zero_optimization", {{"offload_optimizer", {{"device", "cpu"}}}}}};
  return config;
}

/// Two workers of a host of 100 GiB, with or without a GPU each.
std::vector<WorkerInfo> two_on_a_host(bool with_gpus) {
  std::vector<WorkerInfo> workers;
  for (const int rank : {1, 2}) {
    WorkerInfo one = worker(rank, gpu(70 * kGiB, kGiB));
    one.host = "node";
    one.workers_on_host = 2;
    if (!with_gpus) one.devices.clear();
    one.devices.push_back({"cpu", "Some CPU", 100 * kGiB, 20 * kGiB, true, ""});
    workers.push_back(std::move(one));
  }
  return workers;
}

TEST(HostMemoryLimit, IsNoneWhereNothingIsOffloaded) {
  TuningConfig config = unlimited();
  config.stages = {1};
  EXPECT_GT(host_memory_limit_of_run(config, "cuda", two_on_a_host(true)), 0U) << "if needed";

  config.offload.when = OffloadWhen::never;
  EXPECT_EQ(host_memory_limit_of_run(config, "cuda", two_on_a_host(true)), 0U);
  EXPECT_EQ(host_memory_limit_of_plan(config, "cuda", {}, 8), 0U);
}

TEST(HostMemoryLimit, IsThatOfTheRunThatGoesOnIfTheHostHasIt) {
  const TuningConfig config = offloading("cuda", 0);
  const auto workers = two_on_a_host(true);
  const Bytes now = host_memory_limit_of_run(config, "cuda", workers);

  EXPECT_EQ(host_memory_limit_of_run(config, "cuda", workers, now - kGiB), now - kGiB);
  EXPECT_EQ(host_memory_limit_of_run(config, "cuda", workers, now + 2 * kGiB), now);
}

TEST(HostMemoryLimit, OfAUserIsANodesAndDividedByItsWorkers) {
  TuningConfig config = offloading("cuda", 0);
  config.host_memory_limit = 64 * kGiB;

  EXPECT_EQ(host_memory_limit_of_run(config, "cuda", two_on_a_host(true)), 32 * kGiB);
  EXPECT_EQ(host_memory_limit_of_plan(config, "cuda", {}, 8), 8 * kGiB);
}

TEST(HostMemoryLimit, IsAWorkersPartOfWhatItsHostHasWhateverIsFreeNow) {
  const Bytes limit = host_memory_limit_of_run(offloading("cuda", 0), "cuda", two_on_a_host(true));

  EXPECT_GT(limit, 40 * kGiB);
  EXPECT_LT(limit, 43 * kGiB);
}

TEST(HostMemoryLimit, IsThatOfTheSmallestOfSeveralNodes) {
  auto workers = two_on_a_host(true);
  for (WorkerInfo& other : two_on_a_host(true)) {
    other.host = "small";
    other.rank += 2;
    other.devices.back().memory = 48 * kGiB;
    workers.push_back(other);
  }

  const Bytes limit = host_memory_limit_of_run(offloading("cuda", 0), "cuda", workers);

  EXPECT_LE(limit, 48 * kGiB * 85 / 100 / 2);
  EXPECT_GE(limit, 19 * kGiB);
}

TEST(HostMemoryLimit, IsLessWhatADeviceInTheSameMemoryMayTake) {
  const auto workers = two_on_a_host(false);
  const Bytes apart = host_memory_limit_of_run(offloading("cpu", kGiB), "cpu", workers);

  EXPECT_EQ(host_memory_limit_of_run(offloading("cpu", 8 * kGiB), "cpu", workers),
            apart - 7 * kGiB);
  EXPECT_EQ(host_memory_limit_of_run(offloading("cpu", 0), "cpu", workers), 0U);
  EXPECT_EQ(host_memory_limit_of_run(offloading("cpu", 90 * kGiB), "cpu", workers), 1U)
      << "nothing is left, which is not the same as one memory";
}

TEST(HostMemoryLimit, OfAPlanElsewhereIsNotKnown) {
  EXPECT_EQ(host_memory_limit_of_plan(offloading("cuda", 0), "cuda", {gpu(kGiB, 0)}, 8), kNoLimit);
  EXPECT_EQ(host_memory_limit_of_plan(offloading("cpu", 0), "cpu",
                                      {two_on_a_host(false).front().devices}, 2),
            0U);
}

}  // namespace
}  // namespace dstune::memory_limit_test
