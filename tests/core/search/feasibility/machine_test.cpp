#include "core/search/feasibility/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "tests/core/config/faults.hpp"
#include "tests/core/search/feasibility/machine_support.hpp"
#include "tests/support/temporary_directory.hpp"

namespace dstune::machine_test {
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

template <class Call>
std::string fault_of(Call call) {
  try {
    call();
  } catch (const ConfigError& fault) {
    return fault.what();
  }
  return "none";
}

TEST(MachineOfRun, CountsAsTheBackendsUsersAllocate) {
  auto config = make_config();
  const std::vector<WorkerInfo> gpus = {worker(1, "a", 1, {gpu(80 * kGiB), cpu(1, 1)})};
  const std::vector<WorkerInfo> cpus = {worker(1, "a", 1, {cpu(100 * kGiB, 100 * kGiB)})};

  EXPECT_EQ(machine_of_run(config, gpus, 1).allocator, AllocatorModel::caching);
  EXPECT_EQ(machine_of_run(config, cpus, 1).allocator, AllocatorModel::exact);
  config.allocator = AllocatorModel::exact;
  EXPECT_EQ(machine_of_run(config, gpus, 1).allocator, AllocatorModel::exact);
  config.allocator = AllocatorModel::caching;
  const Machine planned = machine_of_plan(config, {}, cpus.front().devices);
  EXPECT_EQ(completed(config, planned).settings.allocator, AllocatorModel::caching);
}

TEST(MachineOfRun, AutoIsTheFirstBackendThatEveryWorkerCanUse) {
  const auto config = make_config();
  const auto one = worker(1, "a", 1, {gpu(80 * kGiB), cpu(kGiB, kGiB)});
  const auto other = worker(2, "b", 1, {gpu(80 * kGiB), cpu(kGiB, kGiB)});
  const auto without = worker(2, "b", 1, {gpu(0, "no driver"), cpu(kGiB, kGiB)});
  const auto unaware = worker(2, "b", 1, {cpu(kGiB, kGiB)});

  EXPECT_EQ(machine_of_run(config, {one, other}, 2).backend, "cuda");
  EXPECT_EQ(machine_of_run(config, {one, without}, 2).backend, "cpu");
  EXPECT_EQ(machine_of_run(config, {one, unaware}, 2).backend, "cpu");
}

TEST(MachineOfRun, AsksForAPrecisionThatWouldBeAGuess) {
  auto config = make_config();
  DeviceInfo modern = gpu(80 * kGiB);
  modern.trains_in_bf16 = true;
  DeviceInfo old = gpu(16 * kGiB);
  old.name = "Tesla V100";
  const std::vector<WorkerInfo> cpus = three_workers();
  const auto on_gpu = [](const DeviceInfo& device) {
    return std::vector<WorkerInfo>{worker(1, "a", 1, {device})};
  };

  EXPECT_EQ(fault_of([&] { machine_of_run(config, cpus, 3); }), "none") << "it is given";
  config.open_precision = "bf16";
  EXPECT_EQ(fault_of([&] { machine_of_run(config, on_gpu(modern), 1); }), "none");
  EXPECT_THAT(fault_of([&] { machine_of_run(config, on_gpu(old), 1); }),
              HasSubstr("/bf16/enabled  leaves the precision to the Trainer (\"auto\"), and Tesla "
                        "V100 has no bf16: give --precision bf16 if you train with --bf16, "));
  EXPECT_THAT(fault_of([&] { machine_of_run(config, cpus, 3); }),
              HasSubstr("a CPU cannot tell which that is: give --precision bf16"));
  EXPECT_EQ(fault_of([&] { machine_of_plan(config, {}, cpus.front().devices); }), "none");
  config.open_precision = "fp16";
  EXPECT_EQ(fault_of([&] { machine_of_run(config, on_gpu(old), 1); }), "none");
}

TEST(MachineOfRun, NamesTheWorkerThatCannotUseTheBackendAndWhy) {
  auto config = make_config();
  config.settings.backend = "cuda";
  const std::vector<WorkerInfo> workers = {worker(1, "a", 1, {gpu(80 * kGiB)}),
                                           worker(2, "b", 1, {gpu(0, "no driver")})};

  EXPECT_THAT(fault_of([&] { machine_of_run(config, workers, 2); }),
              HasSubstr("/dstune/backend  is cuda, which rank 2 on b cannot use: no driver"));
}

TEST(MachineOfRun, SaysThatNoBackendIsEverybodys) {
  const std::vector<WorkerInfo> workers = {worker(1, "a", 1, {gpu(kGiB)}),
                                           worker(2, "b", 1, {cpu(kGiB, kGiB)})};

  EXPECT_THAT(fault_of([&] { machine_of_run(make_config(), workers, 2); }),
              HasSubstr("no backend can be used by all workers"));
}

TEST(MachineOfRun, ASharedDeviceIsDividedAndLeavesRoomForTheSystem) {
  const Machine machine = machine_of_run(make_config(), three_workers(), 3);

  EXPECT_EQ(machine.memory_limit, static_cast<Bytes>(0.85 * 50 * kGiB)) << "two of 100 GiB";
  EXPECT_EQ(machine.threads_per_rank, 4) << "8 cores of two workers";
  EXPECT_EQ(machine.devices_per_node, 2);
}

TEST(MachineOfRun, ADeviceOfItsOwnIsTheWorkersWhole) {
  const std::vector<WorkerInfo> workers = {worker(1, "a", 2, {gpu(80 * kGiB)}),
                                           worker(2, "a", 2, {gpu(40 * kGiB)})};

  EXPECT_EQ(machine_of_run(make_config(), workers, 2).memory_limit, 40 * kGiB);
}

/// Of the worker `rank` on a host where every worker sees one and the same GPU.
TEST(MachineOfRun, WorkersHaveAGpuEachUnlessTheUserLetsThemShare) {
  const std::vector<WorkerInfo> workers = {worker_on_one_gpu(1), worker_on_one_gpu(2),
                                           worker_on_one_gpu(3)};
  auto config = make_config();
  EXPECT_THAT(fault_of([&] { machine_of_run(config, workers, 3, "a"); }),
              HasSubstr("3 workers for the 1 GPU that they see"));
  config.settings.backend = "cpu";
  EXPECT_FALSE(machine_of_run(config, workers, 3, "a").shares_gpu) << "needs none";

  config.settings.backend = "auto";
  config.settings.share_gpu = true;
  const Machine machine = machine_of_run(config, workers, 3, "a");

  EXPECT_EQ(machine.backend, "cuda");
  EXPECT_TRUE(machine.shares_gpu);
  EXPECT_EQ(machine.memory_limit, 20 * kGiB) << "a third of what is free";
  EXPECT_TRUE(completed(config, machine).settings.share_gpu);
  EXPECT_THAT(completed(config, machine).notes, ElementsAre(HasSubstr("the times mean nothing")));
}

TEST(MachineOfRun, LeaveToShareIsNoSharing) {
  auto config = make_config();
  config.settings.share_gpu = true;

  const Machine machine = machine_of_run(config, {worker_on_one_gpu(1)}, 1, "a");

  EXPECT_FALSE(completed(config, machine).settings.share_gpu);
  EXPECT_EQ(machine.memory_limit, 80 * kGiB);
  EXPECT_THAT(completed(config, machine).notes, IsEmpty());
}

TEST(MachineOfRun, TheUsersLimitStays) {
  auto config = make_config();
  config.settings.memory_limit = 7;

  EXPECT_EQ(machine_of_run(config, three_workers(), 3).memory_limit, 7U);
}

TEST(MachineOfRun, TheBackendSaysWhatTheHostsCodeCostsUnlessTheUserDoes) {
  auto worker_on_cpu = worker(1, "a", 1, {gpu(80 * kGiB, "no driver"), cpu(kGiB, kGiB)});
  worker_on_cpu.devices[1].host_overhead = "cpu-gloo";
  auto config = make_config();

  const Machine machine = machine_of_run(config, {worker_on_cpu}, 1);
  config.host_overhead = HostOverhead{};
  const Machine without = machine_of_run(config, {worker_on_cpu}, 1);

  EXPECT_EQ(preset_of(machine.host_overhead), "cpu-gloo");
  EXPECT_EQ(completed(config, machine).settings.host_overhead, machine.host_overhead);
  EXPECT_EQ(preset_of(without.host_overhead), "none");
  const std::vector<WorkerInfo> on_gpu = {worker(1, "a", 1, {gpu(80 * kGiB)})};
  EXPECT_EQ(preset_of(machine_of_run(make_config(), on_gpu, 1).host_overhead), "cuda");
  worker_on_cpu.devices[1].host_overhead = "of another version";
  EXPECT_THROW(machine_of_run(make_config(), {worker_on_cpu}, 1), Error);
}

TEST(MachineOfRun, AProfileThatIsFoundTakesThePresetsPlace) {
  const testing_support::TemporaryDirectory folder;
  const ProfilePlaces places{folder / "host_overhead.json", {}};
  testing_support::write_file(places.of_run, R"({"gradient_hook_us": 1, "sub_module_hook_us": 2,
      "collective_us": 3, "optimizer_tensor_us": 4, "synchronization_us": 5})");
  auto config = make_config();

  const Machine machine = machine_of_run(config, three_workers(), 3, "", {}, places);

  EXPECT_DOUBLE_EQ(machine.host_overhead.at(HostEvent::collective), 3e-6);
  EXPECT_EQ(describe(machine.host_overhead), concat("profile ", places.of_run.string()));
  config.host_overhead = host_overhead_preset(kGlooOverhead);
  EXPECT_EQ(machine_of_run(config, three_workers(), 3, "", {}, places).host_overhead,
            config.host_overhead);
}

TEST(MachineOfRun, ABrokenProfileIsAWarningAndThePresetStays) {
  const testing_support::TemporaryDirectory folder;
  const ProfilePlaces places{folder / "host_overhead.json", {}};
  testing_support::write_file(places.of_run, "{");

  const Machine machine = machine_of_run(make_config(), three_workers(), 3, "", {}, places);

  EXPECT_EQ(preset_of(machine.host_overhead), kCudaOverhead);
  EXPECT_THAT(machine_warnings(make_config(), machine),
              testing::Contains(testing::HasSubstr(places.of_run.string())));
}

// Or a run could not go on where it began.
TEST(MachineOfRun, TheDefaultLimitOfARunThatGoesOnDoesNotDependOnWhatIsFreeNow) {
  const Bytes began_with = machine_of_run(make_config(), three_workers(), 3).memory_limit;
  auto busy = three_workers();
  for (auto& info : busy) info.devices.front().free_memory /= 2;

  EXPECT_EQ(machine_of_run(make_config(), busy, 3, "", {began_with}).memory_limit, began_with);
  EXPECT_LT(machine_of_run(make_config(), busy, 3).memory_limit, began_with);
}

TEST(MachineOfRun, ARankHasAtLeastOneThread) {
  EXPECT_EQ(
      machine_of_run(make_config(), {worker(1, "a", 9, {cpu(kGiB, kGiB)})}, 1).threads_per_rank, 1);
}

TEST(MachineOfRun, AGroupIsAllWorkersUnlessTheUserSaysOtherwise) {
  auto config = make_config();
  EXPECT_EQ(machine_of_run(config, three_workers(), 3).group_size, 3);
  EXPECT_EQ(machine_of_run(config, three_workers(), 2).group_size, 2) << "one was lost";

  config.ranks_per_experiment = 2;

  EXPECT_EQ(machine_of_run(config, three_workers(), 3).group_size, 2);
}

TEST(MachineOfRun, RefusesAGroupOfMoreWorkersThanThereAre) {
  auto config = make_config();
  EXPECT_THAT(fault_of([&] { machine_of_run(config, {}, 0); }), HasSubstr("is 0, but mpirun"));

  config.ranks_per_experiment = 4;

  EXPECT_THAT(fault_of([&] { machine_of_run(config, three_workers(), 3); }),
              HasSubstr("/dstune/ranks_per_experiment  is 4, but mpirun started 3 workers (rank 0 "
                        "only tunes); start 5 ranks or more"));
}

TEST(MachineOfRun, AModelParallelGroupIsOneWorker) {
  auto config = make_config();
  config.autotuning.mp_size = 2;
  config.ranks_per_experiment = 6;

  EXPECT_EQ(machine_of_run(config, three_workers(), 3).group_size, 3);
  config.ranks_per_experiment = 8;
  EXPECT_THAT(fault_of([&] { machine_of_run(config, three_workers(), 3); }),
              HasSubstr("is 4, but mpirun started 3 workers"));
  config.ranks_per_experiment.reset();
  EXPECT_THAT(fault_of([&] { machine_of_run(config, three_workers(), 3); }),
              HasSubstr("/autotuning/mp_size  is 2, which does not divide the 3 ranks of an "
                        "experiment"));
}

// As host_memory_limit.
TEST(MachineOfRun, WhatIsPinnedAndStoredOfANodeIsDividedByTheWorkersOfTheFullestOne) {
  auto config = make_config();
  EXPECT_EQ(machine_of_run(config, three_workers(), 3).pinned_limit, 0U);
  EXPECT_EQ(machine_of_run(config, three_workers(), 3).drive_limit, 0U);
  config.pinned_limit = 8 * kGiB;
  config.drive_limit = 10 * kGiB;

  const Machine machine = machine_of_run(config, three_workers(), 3);
  const auto most = static_cast<Bytes>(machine.devices_per_node);
  const Machine planned = machine_of_plan(config, {16, 8}, {cpu(100 * kGiB, 99 * kGiB)});

  EXPECT_GT(most, 1U);
  EXPECT_EQ(machine.pinned_limit, 8 * kGiB / most);
  EXPECT_EQ(machine.drive_limit, 10 * kGiB / most);
  EXPECT_EQ(planned.pinned_limit, kGiB);
  EXPECT_EQ(planned.drive_limit, 10 * kGiB / 8);
  EXPECT_EQ(machine_of_plan(config, {2}, {cpu(100 * kGiB, 99 * kGiB)}).pinned_limit, 4 * kGiB);
  EXPECT_EQ(completed(config, machine).settings.pinned_limit, machine.pinned_limit);
  EXPECT_EQ(completed(config, machine).settings.drive_limit, machine.drive_limit);
}

TEST(MachineOfPlan, HasDataParallelRanks) {
  auto config = make_config();
  config.autotuning.mp_size = 4;
  const std::vector<DeviceInfo> here = {cpu(100 * kGiB, 99 * kGiB)};

  EXPECT_EQ(machine_of_plan(config, {16}, here).group_size, 4);
  EXPECT_EQ(machine_of_plan(config, {}, here).group_size, 2);
  EXPECT_THAT(fault_of([&] { machine_of_plan(config, {6}, here); }),
              HasSubstr("/autotuning/mp_size  is 4, which does not divide the 6 ranks"));
}

TEST(MachineOfPlan, KnowsNothingOfTheMemoryElsewhere) {
  const Machine machine =
      machine_of_plan(make_config(), {16, 8}, {gpu(0, "no driver"), cpu(kGiB, kGiB)});

  Machine expected{16, 16, "cpu", 0, 1, 8, host_overhead_preset("cuda").value()};
  expected.is_on_host = true;
  EXPECT_EQ(machine, expected);
}

TEST(MachineOfPlan, IsOfAsManyWorkersAsAGroupNeedsOrTwo) {
  auto config = make_config();
  const std::vector<DeviceInfo> here = {cpu(kGiB, kGiB)};
  EXPECT_EQ(machine_of_plan(config, {}, here).group_size, 2);

  config.ranks_per_experiment = 5;

  EXPECT_EQ(machine_of_plan(config, {}, here).workers, 5);
  EXPECT_EQ(machine_of_plan(config, {10, 0}, here).group_size, 5);
  EXPECT_THAT(fault_of([&] {
                machine_of_plan(config, {4, 0}, here);
              }),
              HasSubstr("is 5, but there are 4 workers"));
}

TEST(MachineOfPlan, RefusesABackendThatThisMachineHasNot) {
  auto config = make_config();
  config.settings.backend = "cuda";

  EXPECT_THAT(fault_of([&] { machine_of_plan(config, {}, {gpu(0, "no driver")}); }),
              HasSubstr("is cuda, which this machine cannot use: no driver"));
}

TEST(Completed, HasTheMachinesSettingsAndTheUsersRest) {
  auto config = make_config();
  config.settings.measure_steps = 9;

  const TuningConfig done = completed(config, {4, 2, "sim", 123, 6, 3});

  EXPECT_EQ(config.settings.backend, "auto") << "stays what it was";
  RunSettings expected;
  expected.measure_steps = 9;
  expected.backend = "sim";
  expected.memory_limit = 123;
  expected.threads_per_rank = 6;
  expected.devices_per_node = 3;
  EXPECT_EQ(done.settings, expected);
  EXPECT_EQ(done.source, "config.json");
}

TEST(Completed, HasTheLargestWorkspaceOfPytorchOnAnyGpu) {
  auto config = make_config();
  std::vector<WorkerInfo> workers = {worker(1, "a", 1, {gpu(80 * kGiB)}),
                                     worker(2, "b", 1, {gpu(80 * kGiB)})};
  workers[0].devices.front().product_workspace = {32, 1};
  workers[1].devices.front().product_workspace = {8, 2};

  const Machine machine = machine_of_run(config, workers, 2);

  EXPECT_EQ(completed(config, machine).settings.product_workspace, (ProductWorkspace{32, 2}));
  const Machine planned = machine_of_plan(config, {}, workers[1].devices);
  EXPECT_EQ(completed(config, planned).settings.product_workspace, (ProductWorkspace{8, 2}));
}

TEST(Completed, LoadsAGpuForASecondUnlessTheUserSaysOtherwise) {
  TuningConfig config;
  Machine machine;
  machine.backend = "cpu";
  EXPECT_EQ(completed(config, machine).settings.least_warmup_time, 0);
  EXPECT_EQ(completed(config, machine).settings.least_measure_time, 0);

  machine.backend = "cuda";
  EXPECT_EQ(completed(config, machine).settings.least_warmup_time, 1);
  EXPECT_EQ(completed(config, machine).settings.least_measure_time, 1);

  config.warmup_seconds = 0;
  config.measure_seconds = 2.5;
  EXPECT_EQ(completed(config, machine).settings.least_warmup_time, 0);
  EXPECT_EQ(completed(config, machine).settings.least_measure_time, 2.5);
}

TEST(Completed, LeavesTheObjectivesHeadroomFree) {
  TuningConfig config;
  config.objective.memory_headroom = 30;
  Machine machine;
  machine.memory_limit = 100;

  EXPECT_EQ(completed(config, machine).settings.memory_limit, 70U);

  machine.memory_limit = 30;
  EXPECT_THROW(completed(config, machine), ConfigError);
  machine.memory_limit = 0;
  EXPECT_EQ(completed(config, machine).settings.memory_limit, 0U) << "still not known";
}

}  // namespace
}  // namespace dstune::machine_test
