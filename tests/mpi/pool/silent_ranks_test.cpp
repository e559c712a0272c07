// Ranks of the pool that are late, silent, retired or waited for when the run is interrupted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/pool/mpi_worker_pool.hpp"
#include "tests/mpi/pool/pool_support.hpp"

namespace dstune::silent_ranks_test {
namespace {

using test::count_members;
using test::failure_of;
using test::kWorkers;
using test::make_experiment;
using test::poll_forever;
using test::steps_of;
using test::wait_for;
using test::world_rank;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SilentRanks, TimeLimitEndsAnExperimentThatPolls) {
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

TEST(SilentRanks, RankThatNeverAnswersIsRetiredUntilItDoes) {
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

TEST(SilentRanks, AreLostAndComeBackWithTheirNextWord) {
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

TEST(SilentRanks, RetiredRankGetsNoMoreWork) {
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

TEST(SilentRanks, WaitReturnsOnceWhenInterrupted) {
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
}  // namespace dstune::silent_ranks_test
