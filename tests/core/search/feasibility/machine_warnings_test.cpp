// What the user is told of the machine, and what the journal calls it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/search/feasibility/machine_support.hpp"

namespace dstune::machine_warnings_test {
namespace {

using test::cpu;
using test::gpu;
using test::kGiB;
using test::make_config;
using test::three_workers;
using test::worker;
using test::worker_on_one_gpu;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MachineWarnings, NameTheHostsWhereTheLimitOfTheRunThatGoesOnIsMoreThanWhatIsFree) {
  auto workers = three_workers();
  workers[2].devices.front().free_memory = 40 * kGiB;
  const auto config = make_config();
  const Machine machine = machine_of_run(config, workers, 3, "", {42 * kGiB});

  EXPECT_THAT(machine_warnings(config, machine, workers),
              ElementsAre("the memory limit of the resumed run is 42.00 GiB on each of 1 "
                          "worker of small, more than the 40.00 GiB that are free in host small; "
                          "--memory-limit sets another, under which everything is measured again"));
  EXPECT_THAT(machine_warnings(config, machine, three_workers()), IsEmpty());
  EXPECT_THAT(machine_warnings(config, machine_of_run(config, workers, 3), workers), IsEmpty());
}

TEST(MachineWarnings, CountIdleGpusWhereTheyAreUsed) {
  auto alone = worker_on_one_gpu(1);
  alone.devices.front().seen = 4;
  auto config = make_config();
  EXPECT_THAT(machine_warnings(config, machine_of_run(config, {alone}, 1, "a"), {alone}, "a"),
              ElementsAre(HasSubstr("3 of the 4 GPUs of a stay idle")));

  config.settings.backend = "cpu";
  config.settings.memory_limit = 1;

  EXPECT_THAT(machine_warnings(config, machine_of_run(config, {alone}, 1, "a"), {alone}, "a"),
              IsEmpty());
}

TEST(MachineWarnings, TellGroupsOfMigInstancesOfNccl) {
  std::vector<WorkerInfo> workers = {worker_on_one_gpu(1), worker_on_one_gpu(2)};
  workers[1].devices.front().id = "MIG-b";
  for (WorkerInfo& each : workers) each.devices.front().is_mig_instance = true;
  auto config = make_config();
  const auto warnings = [&] {
    return machine_warnings(config, machine_of_run(config, workers, 2, "a"), workers, "a");
  };
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("NCCL does not connect")));

  config.ranks_per_experiment = 1;

  EXPECT_THAT(warnings(), IsEmpty());
}

TEST(MachineWarnings, NameVariablesOfCollectivesThatDiffer) {
  std::vector<WorkerInfo> workers = {worker_on_one_gpu(1), worker_on_one_gpu(2)};
  workers[0].devices.front().common = {{"NCCL_ALGO", "Ring"}};
  workers[1].devices.front().id = "GPU-b";
  auto config = make_config();
  config.settings.share_gpu = true;

  EXPECT_THAT(machine_warnings(config, machine_of_run(config, workers, 2, "a"), workers, "a"),
              ElementsAre(HasSubstr("NCCL_ALGO is not set on rank 2 on a, but Ring on rank 1")));
}

TEST(MachineWarnings, SayOnceWhatProductsOfFp32AreNotLikeWhereTheyAreUsed) {
  auto workers = three_workers();
  for (auto& worker : workers) worker.devices.front().fp32_caveat = "too fast";
  auto config = make_config();
  EXPECT_THAT(machine_warnings(config, machine_of_run(config, workers, 3), workers),
              ElementsAre("too fast"));

  Machine calibrated = machine_of_run(config, workers, 3);
  calibrated.host_overhead.products = {{DType::fp32, calibrated.threads_per_rank, 1e9}};
  EXPECT_THAT(machine_warnings(config, calibrated, workers), IsEmpty());

  config.deepspeed.set("bf16", json::object{{"enabled", true}});

  EXPECT_THAT(machine_warnings(config, machine_of_run(config, workers, 3), workers), IsEmpty());
}

TEST(MachineWarnings, LeaveTheUsersLimitAloneWhateverIsFree) {
  auto workers = three_workers();
  workers[2].devices.front().free_memory = 1;
  auto config = make_config();
  config.settings.memory_limit = 40 * kGiB;

  EXPECT_THAT(machine_warnings(config, machine_of_run(config, workers, 3), workers), IsEmpty());
}

TEST(MachineWarnings, NameTheUsersLimitAndWhatItExceeds) {
  auto workers = three_workers();
  for (int i : {0, 1}) {
    workers[i].devices.front().bounds = {{"control group /job (memory.max)", 3 * kGiB, 0, "1:2"}};
  }
  auto config = make_config();
  config.settings.memory_limit = 2 * kGiB;
  const auto warnings = [&] {
    return machine_warnings(config, machine_of_run(config, workers, 3), workers);
  };

  EXPECT_THAT(warnings(),
              ElementsAre("memory_limit is 2.00 GiB on each of 2 workers of large, more "
                          "than the 3.00 GiB of control group /job (memory.max); the system kills "
                          "workers that use that much"));

  config.settings.memory_limit = 1024 * kGiB;
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("1.00 TiB on each of 2 workers of large"),
                                      HasSubstr("1.00 TiB on each of 1 worker of small, more than "
                                                "the 60.00 GiB of host small")));
}

TEST(MachineWarnings, APlanOfUnknownHostsCannotAverageByNode) {
  auto config = make_config();
  config.deepspeed.set("zero_optimization", {{"zero_quantized_gradients", true}});
  const std::vector<DeviceInfo> here = {cpu(kGiB, kGiB)};

  EXPECT_THAT(machine_warnings(config, machine_of_plan(config, {16, 0}, here)),
              ElementsAre(HasSubstr("use --hostfile")));
  EXPECT_THAT(machine_warnings(config, machine_of_plan(config, {16, 8}, here)), IsEmpty());
}

TEST(WarningOfOtherGroups, IsForResultsThatCannotBeUsed) {
  Record of_four;
  of_four.experiment.ranks = 4;
  Record of_two;
  of_two.experiment.ranks = 2;

  EXPECT_THAT(warning_of_other_groups({of_four, of_two}, 3),
              HasSubstr("are from groups of 4 ranks, and now groups have 3"));
  EXPECT_EQ(warning_of_other_groups({of_four, of_two}, 2), "");
  EXPECT_EQ(warning_of_other_groups({}, 2), "");
}

TEST(DeviceNames, AreThoseOfTheBackendOnceEach) {
  const std::vector<WorkerInfo> workers = {
      worker(1, "a", 1, {gpu(kGiB), {"cpu", "Some CPU", kGiB, kGiB, true, ""}}),
      worker(2, "b", 1, {gpu(kGiB), {"cpu", "Another CPU", kGiB, kGiB, true, ""}})};

  EXPECT_EQ(device_names("cuda", workers), "Some GPU");
  EXPECT_EQ(device_names("cpu", workers), "Another CPU, Some CPU");
}

}  // namespace
}  // namespace dstune::machine_warnings_test
