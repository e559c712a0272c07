#include "mpi/base/messages.hpp"

#include <gtest/gtest.h>

#include "mpi/base/waiting.hpp"

namespace dstune::messages_test {
namespace {

Message wait_for_message(Mailbox& mailbox) {
  for (Backoff backoff;; backoff.pause()) {
    if (auto message = mailbox.receive()) return *message;
  }
}

TEST(Mailbox, EveryoneHearsTheirRightNeighbour) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  Mailbox mailbox(world);
  const int left = (world.rank() + world.size() - 1) % world.size();
  const int right = (world.rank() + 1) % world.size();

  mailbox.send(left, MessageKind::ready, {{"id", world.rank()}});
  const Message message = wait_for_message(mailbox);

  EXPECT_EQ(message.kind, MessageKind::ready);
  EXPECT_EQ(message.from, right);
  EXPECT_EQ(message.content, (json::object{{"id", right}}));
}

TEST(Mailbox, LongTextArrivesWholeAndBeforeWhatWasSaidLater) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  Mailbox mailbox(world);
  const std::string text(100'000, 'x');
  const int next = (world.rank() + 1) % world.size();

  mailbox.send(next, MessageKind::outcome, {{"text", text}});
  mailbox.send(next, MessageKind::idle);
  const Message first = wait_for_message(mailbox);
  const Message second = wait_for_message(mailbox);

  EXPECT_EQ(first.kind, MessageKind::outcome);
  EXPECT_EQ(first.content, (json::object{{"text", text}}));
  EXPECT_EQ(second.kind, MessageKind::idle);
}

TEST(Mailbox, IsEmptyWhenNobodyWrote) {
  const auto world = Communicator::duplicate(MPI_COMM_WORLD);
  Mailbox mailbox(world);

  EXPECT_FALSE(mailbox.receive().has_value());
}

}  // namespace
}  // namespace dstune::messages_test
