#include "core/search/feasibility/gpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace dstune::gpus_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A worker that takes GPU `index` of the `seen` that it sees on its host.
WorkerInfo worker(int rank, const std::string& host, const std::string& id, int index, int seen) {
  DeviceInfo gpu;
  gpu.backend = "cuda";
  gpu.name = "Some GPU";
  gpu.id = id;
  gpu.index = index;
  gpu.seen = seen;
  DeviceInfo cpu;
  cpu.backend = "cpu";
  WorkerInfo info;
  info.rank = rank;
  info.host = host;
  info.devices = {gpu, cpu};
  return info;
}

/// `count` workers of a host with `gpus` GPUs, ranks from `first`: they take them in turn.
void add_host(std::vector<WorkerInfo>& workers, const std::string& host, int count, int gpus,
              int first) {
  for (int i = 0; i < count; ++i) {
    const int index = i % gpus;
    workers.push_back(
        worker(first + i, host, "GPU-0000000" + std::to_string(index) + "-" + host, index, gpus));
  }
}

std::vector<WorkerInfo> host_of(int count, int gpus) {
  std::vector<WorkerInfo> workers;
  add_host(workers, "node1", count, gpus, 1);
  return workers;
}

std::string fault_of(const std::vector<WorkerInfo>& workers, const std::string& tuner_host) {
  try {
    check_gpus(workers, tuner_host);
  } catch (const ConfigError& fault) {
    return fault.what();
  }
  return "none";
}

TEST(CheckGpus, AWorkerForEachGpuIsRight) {
  EXPECT_EQ(fault_of(host_of(4, 4), "node1"), "none");
  EXPECT_EQ(fault_of(host_of(3, 4), "node1"), "none");
}

TEST(CheckGpus, MoreWorkersThanGpusAreRefusedWithTheRightLineOfTheHostFile) {
  EXPECT_EQ(fault_of(host_of(5, 4), "node1"),
            "mpirun: 1 problem\n"
            "  node1  has 5 workers for the 4 GPUs that they see, and each needs one of its own; "
            "its line in the host file: \"node1 slots=5\", with one for rank 0, which uses no GPU "
            "(--share-gpu lets workers share one, for tests)");
  EXPECT_THAT(fault_of(host_of(2, 1), "login"),
              AllOf(HasSubstr("2 workers for the 1 GPU that"), HasSubstr("\"node1 slots=1\" (")));
}

TEST(CheckGpus, WorkersThatSeeTheSameMigInstanceAreToldHowEachGetsItsOwn) {
  std::vector<WorkerInfo> workers = {worker(1, "node1", "MIG-a", 0, 1),
                                     worker(2, "node1", "MIG-a", 0, 1)};
  for (WorkerInfo& each : workers) each.devices.front().is_mig_instance = true;

  EXPECT_THAT(fault_of(workers, "node1"),
              HasSubstr("has 2 workers for the 1 MIG instance that they see, and each needs one of "
                        "its own: a process sees one alone, the first of its CUDA_VISIBLE_DEVICES "
                        "(nvidia-smi -L lists them; docs/gpu.md)"));

  workers[1].devices.front().id = "MIG-b";
  EXPECT_EQ(fault_of(workers, "node1"), "none");
}

TEST(CheckGpus, EveryHostThatIsWrongIsNamedAtOnce) {
  std::vector<WorkerInfo> workers;
  add_host(workers, "node1", 3, 2, 1);
  add_host(workers, "node2", 2, 2, 4);
  add_host(workers, "node3", 9, 8, 6);

  EXPECT_THAT(fault_of(workers, "node1"),
              AllOf(HasSubstr("2 problems"), HasSubstr("\"node1 slots=3\""),
                    HasSubstr("\"node3 slots=8\""), Not(HasSubstr("node2"))));
}

TEST(CheckGpus, BindingsThatGiveEachWorkerItsOwnAreRight) {
  EXPECT_EQ(fault_of({worker(1, "node1", "GPU-a", 0, 1), worker(2, "node1", "GPU-b", 0, 1)}, ""),
            "none");
}

TEST(CheckGpus, ABindingThatGivesTwoWorkersTheSameIsRefused) {
  const std::vector<WorkerInfo> workers = {worker(1, "node1", "GPU-a", 0, 1),
                                           worker(2, "node1", "GPU-a", 0, 2)};

  EXPECT_THAT(fault_of(workers, "node1"),
              AllOf(HasSubstr("node1  ranks 1 and 2 would both drive the GPU GPU-a"),
                    HasSubstr("CUDA_VISIBLE_DEVICES"), HasSubstr("1 GPU and 2 GPUs")));
}

TEST(CheckGpus, HostsThatAreContainersOfOneMachineAreFoundOut) {
  const std::vector<WorkerInfo> workers = {worker(1, "box1", "GPU-a", 0, 1),
                                           worker(2, "box2", "GPU-a", 0, 1)};

  EXPECT_THAT(fault_of(workers, "box1"), HasSubstr("box1, box2  ranks 1 and 2 would both drive"));
}

TEST(CheckGpus, WithoutIdsThereIsNothingToSay) {
  EXPECT_EQ(fault_of({worker(1, "a", "", 0, 0), worker(2, "a", "", 0, 0)}, "a"), "none");
}

TEST(WorkersOnGpu, AreThoseWithItsId) {
  const auto workers = host_of(5, 2);

  EXPECT_EQ(workers_on_gpu_of(workers[0], workers), 3);
  EXPECT_EQ(workers_on_gpu_of(workers[1], workers), 2);
  EXPECT_EQ(workers_on_gpu_of(worker(1, "a", "", 0, 0), workers), 1);
}

TEST(IdleGpuWarnings, CountTheGpusThatNobodyDrives) {
  auto workers = host_of(3, 8);
  add_host(workers, "node2", 4, 4, 4);

  EXPECT_THAT(
      idle_gpu_warnings(workers, "node1"),
      ElementsAre("5 of the 8 GPUs of node1 stay idle: it has 3 workers; its line in the "
                  "host file for all of them: \"node1 slots=9\", with one for rank 0, which "
                  "uses no GPU"));
  EXPECT_THAT(idle_gpu_warnings(host_of(5, 4), ""), IsEmpty());
}

TEST(MigWarning, SaysThatNcclDoesNotConnectInstances) {
  auto workers = host_of(2, 2);
  EXPECT_EQ(mig_warning(workers), "");

  workers[1].devices.front().is_mig_instance = true;

  EXPECT_THAT(mig_warning(workers), HasSubstr("MIG instances, which NCCL does not connect"));
}

TEST(GpuTable, NamesTheGpuOfEveryWorker) {
  EXPECT_EQ(gpu_table(host_of(2, 2)),
            "| host  | rank | GPU | name     | id           |\n"
            "| ----- | ---: | --: | -------- | ------------ |\n"
            "| node1 |    1 |   0 | Some GPU | GPU-00000000 |\n"
            "| node1 |    2 |   1 | Some GPU | GPU-00000001 |\n");
  EXPECT_EQ(gpu_table({worker(1, "a", "", 0, 0)}), "");
}

}  // namespace
}  // namespace dstune::gpus_test
