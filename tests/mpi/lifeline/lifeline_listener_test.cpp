#include "mpi/lifeline/lifeline_listener.hpp"

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/base/json.hpp"
#include "mpi/base/waiting.hpp"

namespace dstune::lifeline_listener_test {
namespace {

constexpr int kWorlds = 4;

class LifelineTest : public testing::Test {
 protected:
  LifelineTest() : listener_(std::in_place, kWorlds), address_(listener_->address()) {
    address_.hosts = {"127.0.0.1"};
  }

  /// Looks at both ends until `done`.
  template <class Done>
  void turn_until(std::vector<Lifeline*> lifelines, Done done) {
    for (Backoff backoff; !done(); backoff.pause()) {
      if (listener_) listener_->look(steady_now());
      for (Lifeline* one : lifelines) gone_ = one->is_rank0_gone(steady_now());
    }
  }
  auto state_is(int rank, LineState state) {
    return [=, this] { return listener_->state(rank) == state; };
  }
  FileHandle call() const {
    FileHandle stranger(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(address_.port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(stranger.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return stranger;
  }
  static void say(const FileHandle& socket, const std::string& text) {
    EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  std::optional<LifelineListener> listener_;
  LifelineAddress address_;
  bool gone_ = false;
};

TEST_F(LifelineTest, AddressSurvivesItsJourney) {
  const auto copy = lifeline_address_from_json(to_json(address_));

  EXPECT_EQ(copy.hosts, address_.hosts);
  EXPECT_EQ(copy.port, address_.port);
  EXPECT_EQ(copy.token, address_.token);
  EXPECT_EQ(copy.answer, address_.answer);
  EXPECT_EQ(copy.token.size(), 32U);
  EXPECT_NE(copy.token, copy.answer);
}

TEST_F(LifelineTest, WorkerThatIsKilledIsTold) {
  const pid_t worker = fork();
  if (worker == 0) {
    Lifeline lifeline(address_, 2);
    for (Backoff backoff;; backoff.pause()) lifeline.is_rank0_gone(steady_now());
  }
  turn_until({}, state_is(2, LineState::whole));

  kill(worker, SIGKILL);
  turn_until({}, state_is(2, LineState::closed));
  waitpid(worker, nullptr, 0);

  EXPECT_EQ(listener_->state(1), LineState::none);
}

TEST_F(LifelineTest, EndOfRank0IsSeenByTheWorker) {
  Lifeline lifeline(address_, 1);
  turn_until({&lifeline}, state_is(1, LineState::whole));
  EXPECT_FALSE(gone_);

  listener_.reset();

  turn_until({&lifeline}, [&] { return gone_; });
}

TEST_F(LifelineTest, LineThatBreaksWhileRank0LivesIsMadeAgain) {
  Lifeline first(address_, 1);
  turn_until({&first}, state_is(1, LineState::whole));
  Lifeline second(address_, 1);  // takes the place: the first one's connection is closed

  turn_until({&second}, [&] { return second.is_whole(); });
  turn_until({&first}, [&] { return !first.is_whole(); });
  turn_until({&first}, [&] { return first.is_whole(); });

  EXPECT_FALSE(gone_);
}

TEST_F(LifelineTest, WorkerThatNeverMetRank0DoesNotCallItDead) {
  listener_.reset();  // "connection refused" from the start
  Lifeline lifeline(address_, 1);
  Lifeline nowhere(LifelineAddress{}, 1);

  for (int look = 0; look < 1000; ++look) {
    EXPECT_FALSE(lifeline.is_rank0_gone(look));
    EXPECT_FALSE(nowhere.is_rank0_gone(look));
  }
}

TEST_F(LifelineTest, CallerThatLeftBeforeTheAnswerIsNoDeath) {
  {
    const FileHandle impatient = call();
    say(impatient, lifeline_greeting(address_.token, 1));
  }
  Lifeline other(address_, 2);

  turn_until({&other}, state_is(2, LineState::whole));

  EXPECT_EQ(listener_->state(1), LineState::none);
}

TEST_F(LifelineTest, StrangersAreDropped) {
  const std::vector<std::string> greetings = {
      lifeline_greeting(std::string(32, 'x'), 1), lifeline_greeting(address_.token, 0),
      lifeline_greeting(address_.token, kWorlds), std::string(100, ' ')};
  for (const auto& greeting : greetings) {
    const FileHandle stranger = call();
    say(stranger, greeting);
    char answer = 0;
    ssize_t got = -1;
    turn_until({}, [&] {
      got = recv(stranger.get(), &answer, 1, MSG_DONTWAIT);
      return got >= 0 || errno == ECONNRESET;
    });
    EXPECT_LE(got, 0) << greeting;
  }
  for (int rank = 0; rank < kWorlds; ++rank) EXPECT_EQ(listener_->state(rank), LineState::none);
}

TEST_F(LifelineTest, SilentStrangersAreLetInByFewsAndNotForEver) {
  std::vector<FileHandle> strangers;
  for (int i = 0; i < 40; ++i) strangers.push_back(call());
  const FileHandle probe(dup(0));
  Seconds now = 1000;
  listener_->look(now);
  const FileHandle after(dup(0));
  EXPECT_LE(after.get() - probe.get(), 17);  // descriptors are given in order

  Lifeline worker(address_, 1);
  for (Backoff backoff; listener_->state(1) != LineState::whole; backoff.pause()) {
    listener_->look(now += 0.5);
    worker.is_rank0_gone(1);
  }
  EXPECT_EQ(listener_->state(1), LineState::whole);
}

}  // namespace
}  // namespace dstune::lifeline_listener_test
