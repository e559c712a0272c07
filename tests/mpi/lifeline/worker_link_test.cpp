#include "mpi/lifeline/worker_link.hpp"

#include <gtest/gtest.h>

#include "core/device/group.hpp"

namespace dstune::worker_link_test {
namespace {

/// Started with RANKS 2: rank 0 sends orders, rank 1 reads them when all of them have arrived.
class WorkerLinkTest : public testing::Test {
 protected:
  void send(MessageKind kind, const json::object& content = {}) {
    if (rank_ == 0) mailbox_.send(1, kind, content);
  }
  /// The messages of one pair of ranks arrive in the order in which they were sent.
  void meet() const { MPI_Barrier(world_.get()); }

  Communicator world_ = Communicator::duplicate(MPI_COMM_WORLD);
  int rank_ = world_.rank();
  Mailbox mailbox_{world_};
};

TEST_F(WorkerLinkTest, AbortReadTogetherWithGoEndsTheExperiment) {
  send(MessageKind::go, {{"id", 7}, {"tag", 1}});
  send(MessageKind::abort, {{"id", 7}});
  meet();
  if (rank_ == 0) return;

  WorkerLink link(world_, {});
  const auto order = link.next_order();
  link.begin(7);

  ASSERT_TRUE(order);
  EXPECT_EQ(order->kind, MessageKind::go);
  EXPECT_THROW(link.poll(), ExperimentAborted);
}

TEST_F(WorkerLinkTest, StopReadTogetherWithGoEndsTheExperimentAndIsAnOrderAfterIt) {
  send(MessageKind::go, {{"id", 7}, {"tag", 1}});
  send(MessageKind::stop);
  meet();
  if (rank_ == 0) return;

  WorkerLink link(world_, {});
  link.next_order();
  link.begin(7);

  EXPECT_THROW(link.poll(), ExperimentAborted);
  link.end();
  const auto order = link.next_order();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->kind, MessageKind::stop);
}

TEST_F(WorkerLinkTest, AbortOfAnotherExperimentIsNoneOfThisOne) {
  send(MessageKind::go, {{"id", 8}, {"tag", 1}});
  send(MessageKind::abort, {{"id", 7}});
  meet();
  if (rank_ == 0) return;

  WorkerLink link(world_, {});
  link.next_order();
  link.begin(8);

  EXPECT_NO_THROW(link.poll());
}

}  // namespace
}  // namespace dstune::worker_link_test
