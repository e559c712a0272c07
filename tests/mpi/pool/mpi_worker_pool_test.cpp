#include "mpi/pool/mpi_worker_pool.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/device/faults.hpp"
#include "tests/mpi/pool/pool_support.hpp"

namespace dstune {
namespace {

using test::count_members;
using test::make_experiment;
using test::wait_for;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t kWorkers = 4;  // RANKS 5: rank 0 and these

/// Rank of this process in the world, as the runners need it.
int world_rank() {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

[[noreturn]] void poll_forever(MpiGroup& group) {
  for (Backoff backoff;; backoff.pause()) group.poll();
}

int steps_of(const Completion& completion) {
  return std::holds_alternative<Measured>(completion.outcome)
             ? std::get<Measured>(completion.outcome).steps
             : -1;
}

Failed failure_of(const Completion& completion) {
  return std::holds_alternative<Failed>(completion.outcome)
             ? std::get<Failed>(completion.outcome)
             : Failed{FailureKind::quarantined, "did not fail"};
}

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

TEST(MpiWorkerPool, TimeLimitEndsAnExperimentThatPolls) {
  const auto runner = [](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name == "endless") poll_forever(group);
    return count_members(experiment, group);
  };
  const bool alive = test::with_pool({}, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("endless", 3, 0.05), {1, 2, 4});
    const auto endless = wait_for(pool, 1);
    const std::size_t idle = pool.idle().size();
    pool.start(2, make_experiment("next", 3), {1, 2, 4});
    const auto next = wait_for(pool, 1);

    EXPECT_EQ(failure_of(endless[0]).kind, FailureKind::timeout);
    EXPECT_THAT(failure_of(endless[0]).reason, HasSubstr("experiment_timeout"));
    EXPECT_THAT(endless[0].culprits, IsEmpty()) << "all came back in time";
    EXPECT_EQ(idle, kWorkers);
    EXPECT_EQ(steps_of(next[0]), 3);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, RankThatNeverAnswersIsRetiredUntilItDoes) {
  const auto side = Communicator::duplicate(MPI_COMM_WORLD);
  const auto runner = [&](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name != "stuck") return count_members(experiment, group);
    if (world_rank() != 3) poll_forever(group);
    int key = 0;
    MPI_Recv(&key, 1, MPI_INT, 0, 0, side.get(), MPI_STATUS_IGNORE);
    group.poll();
    return test::measured(0);
  };
  PoolOptions options;
  options.abort_grace = 2;
  const bool alive = test::with_pool(options, runner, [&](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("stuck", 2, 0.5), {1, 3});
    const auto stuck = wait_for(pool, 1);
    const int size = pool.size();
    pool.start(2, make_experiment("next", 3), {1, 2, 4});
    const auto next = wait_for(pool, 1);
    const int key = 1;
    MPI_Send(&key, 1, MPI_INT, 3, 0, side.get());
    test::wait_for_idle(pool, kWorkers);
    pool.start(3, make_experiment("all", 4), {1, 2, 3, 4});
    const auto all = wait_for(pool, 1);

    EXPECT_EQ(failure_of(stuck[0]).kind, FailureKind::timeout);
    EXPECT_THAT(stuck[0].culprits, ElementsAre(3));
    EXPECT_EQ(size, 3);
    EXPECT_EQ(steps_of(next[0]), 3);
    EXPECT_EQ(steps_of(all[0]), 4);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, SilentRankIsLostAndComesBackWithItsNextWord) {
  const auto side = Communicator::duplicate(MPI_COMM_WORLD);
  const auto runner = [&](const Experiment& experiment, MpiGroup& group) -> Outcome {
    if (experiment.name != "silent" || world_rank() != 2) return count_members(experiment, group);
    int key = 0;
    MPI_Recv(&key, 1, MPI_INT, 0, 0, side.get(), MPI_STATUS_IGNORE);
    return count_members(experiment, group);
  };
  PoolOptions options;
  options.worker_timeout = 1;  // ten of the workers' heartbeats
  const bool alive = test::with_pool(options, runner, [&](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("silent", 2), {1, 2});
    const auto silent = wait_for(pool, 1);
    const int size = pool.size();
    const int key = 1;
    MPI_Send(&key, 1, MPI_INT, 2, 0, side.get());
    test::wait_for_idle(pool, kWorkers);

    EXPECT_EQ(failure_of(silent[0]).kind, FailureKind::worker_lost);
    EXPECT_THAT(failure_of(silent[0]).reason, HasSubstr("rank 2 on "));
    EXPECT_THAT(silent[0].culprits, ElementsAre(2));
    EXPECT_EQ(size, 3);
  });

  EXPECT_TRUE(alive);
}

TEST(MpiWorkerPool, RetiredRankGetsNoMoreWork) {
  const bool alive = test::with_pool({}, count_members, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("one", 2), {3, 4});
    pool.retire(2);
    pool.retire(3);
    const auto busy = wait_for(pool, 1);
    const auto idle = pool.idle();

    EXPECT_EQ(steps_of(busy[0]), 2) << "what runs is not disturbed";
    ASSERT_EQ(idle.size(), 2U);
    EXPECT_EQ(idle[0].rank, 1);
    EXPECT_EQ(idle[1].rank, 4);
    EXPECT_EQ(pool.size(), 2);
    EXPECT_THROW(pool.start(2, make_experiment("two", 1), {3}), Error);
  });

  EXPECT_TRUE(alive) << "it lives on and can finalize";
}

TEST(MpiWorkerPool, WaitReturnsOnceWhenInterrupted) {
  const auto runner = [](const Experiment&, MpiGroup& group) -> Outcome { poll_forever(group); };
  PoolOptions options;
  int looks = 0;
  options.interrupted = [&] { return ++looks > 3; };
  const bool alive = test::with_pool(options, runner, [](MpiWorkerPool& pool) {
    pool.start(1, make_experiment("endless", 2), {1, 2});

    const auto done = pool.wait();

    EXPECT_TRUE(done.empty());
    EXPECT_EQ(pool.idle().size(), 2U);
  });

  EXPECT_TRUE(alive);
}

}  // namespace
}  // namespace dstune
