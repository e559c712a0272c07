#include "mpi/pool/mpi_worker_pool.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/faults.hpp"
#include "tests/mpi/pool/pool_support.hpp"

namespace dstune::mpi_worker_pool_test {
namespace {

using test::count_members;
using test::failure_of;
using test::kWorkers;
using test::make_experiment;
using test::steps_of;
using test::wait_for;
using test::world_rank;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(MpiWorkerPool, KnowsItsWorkersFromTheStart) {
  const bool alive = test::with_pool({}, count_members, [](MpiWorkerPool& pool) {
    const auto workers = pool.workers();

    ASSERT_EQ(workers.size(), kWorkers);
    EXPECT_EQ(pool.size(), static_cast<int>(kWorkers));
    for (std::size_t i = 0; i < workers.size(); ++i) {
      EXPECT_EQ(workers[i].rank, static_cast<int>(i) + 1);
      EXPECT_EQ(workers[i].workers_on_host, static_cast<int>(kWorkers));
      EXPECT_GE(workers[i].cores, 1);
      EXPECT_EQ(workers[i].devices, test::devices_of_workers());
    }
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, RunsExperimentsOnDisjointRanksAtOnce) {
  const bool alive = test::with_pool({}, count_members, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("one", 1), {4});
    pool.start(2, make_experiment("two", 2), {1, 3});
    const auto idle = pool.idle();

    auto done = wait_for(pool, 2);

    ASSERT_EQ(idle.size(), 1U);
    EXPECT_EQ(idle[0].rank, 2);
    std::sort(done.begin(), done.end(), [](auto& a, auto& b) { return a.id < b.id; });
    EXPECT_EQ(steps_of(done[0]), 1);
    EXPECT_EQ(steps_of(done[1]), 2);
    EXPECT_EQ(pool.idle().size(), kWorkers);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, GroupsAreMadeAndReusedInAnyOrder) {
  const bool alive = test::with_pool({}, count_members, [](MpiWorkerPool& pool) {
    const std::vector<std::vector<int>> lists = {{1, 2, 3, 4}, {2, 3}, {1, 2}, {3, 4}, {4, 2, 1}};
    std::uint64_t id = 0;
    int right = 0;

    for (int round = 0; round < 10; ++round) {
      for (const auto& ranks : lists) {
        const int size = static_cast<int>(ranks.size());
        pool.start(++id, make_experiment("again", size), ranks);
        if (steps_of(wait_for(pool, 1).front()) == size) ++right;
      }
    }

    EXPECT_EQ(right, 50);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, RefusesRanksThatAreNotIdleOrNotEnough) {
  const bool alive = test::with_pool({}, count_members, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("first", 2), {1, 2});

    EXPECT_THROW(pool.start(2, make_experiment("busy", 1), {2}), Error);
    EXPECT_THROW(pool.start(3, make_experiment("few", 2), {3}), Error);
    EXPECT_THROW(pool.start(1, make_experiment("same id", 1), {3}), Error);
    EXPECT_EQ(steps_of(wait_for(pool, 1).front()), 2);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, ExceptionOnOneRankFreesThePeersThatWaitForIt) {
  const auto runner = [](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name == "broken" && world_rank() == 2) {
      throw std::runtime_error("kernel failed");
    }
    return count_members(experiment, group);
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("broken", 4), {1, 2, 3, 4});
    const auto broken = wait_for(pool, 1);
    const std::size_t idle = pool.idle().size();
    pool.start(2, make_experiment("next", 4), {1, 2, 3, 4});
    const auto next = wait_for(pool, 1);

    EXPECT_EQ(failure_of(broken[0]).kind, FailureKind::error);
    EXPECT_THAT(failure_of(broken[0]).reason, HasSubstr("rank 2 on "));
    EXPECT_THAT(failure_of(broken[0]).reason, HasSubstr("kernel failed"));
    EXPECT_THAT(broken[0].culprits, ElementsAre(2));
    EXPECT_EQ(idle, kWorkers);
    EXPECT_EQ(steps_of(next[0]), 4);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, ARankWithoutItsDeviceGetsNoMoreWorkAndLivesOn) {
  const auto runner = [](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name == "fatal" && world_rank() == 2) throw DeviceLostError("no GPU");
    return count_members(experiment, group);
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("fatal", 3), {1, 2, 4});
    const auto fatal = wait_for(pool, 1);
    const auto idle = pool.idle();
    pool.start(2, make_experiment("next", 3), {1, 3, 4});
    const auto next = wait_for(pool, 1);

    EXPECT_EQ(failure_of(fatal[0]).kind, FailureKind::device_lost);
    EXPECT_THAT(failure_of(fatal[0]).reason, HasSubstr("rank 2 on "));
    EXPECT_THAT(failure_of(fatal[0]).reason, HasSubstr(": no GPU"));
    EXPECT_THAT(fatal[0].culprits, ElementsAre(2));
    EXPECT_EQ(idle.size(), kWorkers - 1);
    EXPECT_EQ(pool.size(), static_cast<int>(kWorkers) - 1);
    EXPECT_THROW(pool.start(3, make_experiment("again", 1), {2}), Error);
    EXPECT_EQ(steps_of(next[0]), 3);
  });

  EXPECT_TRUE(alive) << "it says bye and can finalize";
}

TEST(MpiWorkerPool, EveryRankThatLosesItsDeviceInAnExperimentIsOut) {
  const auto runner = [](const Experiment&, MpiGroup&) -> Outcome {
    throw DeviceLostError("no GPU");
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("fatal", 3), {1, 2, 4});
    const auto fatal = wait_for(pool, 1);

    EXPECT_EQ(failure_of(fatal[0]).kind, FailureKind::device_lost);
    EXPECT_EQ(fatal[0].culprits.size(), 1U) << "the first";
    EXPECT_EQ(pool.size(), 1);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, WrongSumsNameTheirGroup) {
  const auto runner = [](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name == "corrupt") throw WrongSumsError("3 is 4");
    return count_members(experiment, group);
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("corrupt", 2), {2, 3});
    const auto corrupt = wait_for(pool, 1);

    const Failed failed = failure_of(corrupt[0]);
    EXPECT_EQ(failed.kind, FailureKind::wrong_sums);
    EXPECT_THAT(failed.reason, HasSubstr(": 3 is 4 (group of rank 2 on "));
    EXPECT_THAT(failed.reason, HasSubstr(", rank 3 on "));
    EXPECT_EQ(pool.idle().size(), kWorkers);
  });

  EXPECT_TRUE(alive);
}

OutOfMemory fault_of(const Completion& completion) {
  const auto* fault = std::get_if<OutOfMemory>(&completion.outcome);
  return fault == nullptr ? OutOfMemory{-1} : *fault;
}

TEST(MpiWorkerPool, MemoryThatTheMachineDoesNotHaveIsAnOutcome) {
  const auto runner = [](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (world_rank() == 3 && experiment.name == "mapping") {
      throw OutOfMemoryError(MemoryCategory::gradients, 7, 5, 11);
    }
    if (world_rank() == 3 && experiment.name == "vector") throw std::bad_alloc();
    return count_members(experiment, group);
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("mapping", 2), {2, 3});
    const auto mapping = wait_for(pool, 1);
    pool.start(2, make_experiment("vector", 2), {2, 3});
    const auto vector = wait_for(pool, 1);

    EXPECT_EQ(fault_of(mapping[0]), (OutOfMemory{3, MemoryCategory::gradients, 7, 5, 11}));
    EXPECT_EQ(fault_of(vector[0]).rank, 3);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, OutOfMemoryNamesTheWorldsRank) {
  const auto runner = [](const Experiment&, MpiGroup&) -> Outcome {
    return OutOfMemory{1, MemoryCategory::gradients, 7, 5, 11};  // 1 of the group
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("large", 2), {2, 4});

    EXPECT_EQ(fault_of(wait_for(pool, 1)[0]).rank, 4);
  });

  EXPECT_TRUE(alive);
}

}  // namespace
}  // namespace dstune::mpi_worker_pool_test
